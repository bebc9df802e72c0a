// RUN: partita-opt %s --split-input-file --parsing-diagnostics --verify-diagnostics | filecheck %s

// A wrong claim or decision is refused when the text is read, with the op and what to write instead.

// A factor does not fit.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.rev %a {dimensions = (1,)} attributes {plan.place = [#plan.place<1 data*1>]} : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `rev` cannot be placed on `data*1` at index 1: needs one block on each device
// CHECK-NEXT: note: the op is `%b = lax.rev %a {dimensions = (1,)} : f32[8, 8] -> f32[8, 8]`
// CHECK-NEXT: help: the index has 8 values; leave it whole, or take a factor that divides it

// -----

// The op has no such index.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<3 data*2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `dot_general` has no index 3
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: its indices are 0 to 2

// -----

// An axis is used twice.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<0 data*2, 1 data*2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `dot_general` is placed on `data` twice
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: an op uses an axis once

// -----

// Two claims on one axis.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.claims = [#plan.claim<0 data*2 by 1>, #plan.claim<1 data*2 by 2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `lax.dot_general` has two claims on `data`
// CHECK-NEXT: help: an op uses an axis once

// -----

// The op is not linear.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]> {plan.home = [#plan.home<argument: [8, data*4]>]}, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<2 data*4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.tanh %a attributes {plan.sums = [#plan.sum<{+data}>]} : f32[8, 8] -> f32[8, 8]
    func.return {plan.moves = [#plan.move<0: operand 0: [8, 8]{+data} to [8, 8] by all_reduce add over (data)>]} %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `tanh` cannot carry the sum {+data}: it is not linear in its operands
// CHECK-NEXT: note: the op is `%b = lax.tanh %a : f32[8, 8] -> f32[8, 8]`
// CHECK-NEXT: help: take its `plan.sums` off, and move its operands: the sum then resolves before it

// -----

// The op scans its own blocks.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]> {plan.home = [#plan.home<argument: [8, data*4]>]}, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<2 data*4, 0 model*4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.cumsum %a {axis = 0, reverse = False} attributes {plan.place = [#plan.place<0 model*4>], plan.sums = [#plan.sum<{+data}>]} : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `cumsum` carries the sum {+data}, and makes of its own blocks what is no sum
// CHECK-NEXT: note: the op is `%b = lax.cumsum %a {axis = 0, reverse = False} : f32[8, 8] -> f32[8, 8]`
// CHECK-NEXT: help: take its `plan.sums` off, and move its operands: the sum then resolves before it

// -----

// Nothing is pending.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a attributes {plan.sums = [#plan.sum<{+data}>]} : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `neg` cannot carry the sum {+data}: none of its operands is pending
// CHECK-NEXT: note: the op is `%b = lax.neg %a : f32[8, 8] -> f32[8, 8]`
// CHECK-NEXT: help: take its `plan.sums` off, and move its operands: the sum then resolves before it

// -----

// A sum is never resolved.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]> {plan.home = [#plan.home<argument: [8, data*4]>]}, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<2 data*4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return {plan.moves = []} %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `neg` reads operand 0 as [8, 8], but the value is [8, 8]{+data} and does not move
// CHECK-NEXT: note: the op is `%b = lax.neg %a : f32[8, 8] -> f32[8, 8]`
// CHECK-NEXT: help: write `#plan.move<NUMBER: operand 0: [8, 8]{+data} to [8, 8] by all_reduce add over (data)>`

// -----

// A move is missing.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<0 data*2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a attributes {plan.place = [#plan.place<0 data*2>], plan.moves = [#plan.move<0: operand 0: [data*2, 8] to [data*2, 8] by nothing>]} : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `dot_general` reads operand 0 as [data*2, 16], but the value is [8, 16] and does not move
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: write `#plan.move<NUMBER: operand 0: [8, 16] to [data*2, 16] by slice over (data) 0@2>`

// -----

// The path does not lead to the target.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.moves = [#plan.move<0: operand 1: [data*4, 8] to [16, 8] by all_gather over (data) 1@2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `all_gather over (data) 1@2` begins where dim 1 is on `data*2`, but the value is [data*4, 8] there
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: the cheapest path is `all_gather over (data) 0@4`

// -----

// The path ends elsewhere.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.moves = [#plan.move<0: operand 1: [data*4, 8] to [16, 8] by slice over (model) 1@4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      the path `slice over (model) 1@4` leads from [data*4, 8] to [data*4, model*4], not to [16, 8]
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: the cheapest path is `all_gather over (data) 0@4`

// -----

// No such step.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.moves = [#plan.move<0: operand 1: [data*4, 8] to [16, 8] by broadcast over (data)>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `broadcast` is no step
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: the steps are all_gather, all_reduce, all_to_all, cut, each_trip, halo, pad, permute, pieces, reduce_scatter, slice
// CHECK-NEXT: help: the cheapest path is `all_gather over (data) 0@4`

// -----

// A fold of what is not pending.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.moves = [#plan.move<0: operand 1: [data*4, 8] to [16, 8] by all_reduce add over (model); all_gather over (data) 0@4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `all_reduce add over (model)` folds `+model`, which is not pending there
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: the cheapest path is `all_gather over (data) 0@4`

// -----

// The move starts elsewhere.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.moves = [#plan.move<0: operand 1: [16, data*2] to [16, 8] by all_gather over (data) 1@2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      a move starts at [16, data*2], but the value is [data*4, 8] there
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: write `#plan.move<NUMBER: operand ...: [data*4, 8] to [16, 8] by all_gather over (data) 0@4>`

// -----

// The move leads elsewhere.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.moves = [#plan.move<0: operand 1: [data*4, 8] to [16, data*2] by all_to_all over (data) 0@4 to 1@2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `dot_general` reads operand 1 as [16, 8], but its move leads to [16, data*2]
// CHECK-NEXT: note: the op is `%a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]`
// CHECK-NEXT: help: write `#plan.move<NUMBER: operand 1: [data*4, 8] to [16, 8] by all_gather over (data) 0@4>`

// -----

// No operand of this number.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.moves = [#plan.move<0: operand 2: [data*4, 8] to [16, 8] by all_gather over (data) 0@4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `lax.dot_general` has no `operand 2`

// -----

// An unknown attribute.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.places = [#plan.place<0 data*2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `lax.dot_general` has an unknown attribute `plan.places`
// CHECK-NEXT: help: did you mean `plan.place`?

// -----

// Another attribute than the name says.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.sum<{+data}>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK:      `plan.place` of `lax.dot_general` has #plan.sum<{+data}>
// CHECK-NEXT: help: it is a list of `#plan.place<0 data*64, 2 model*8>`

// -----

// A text that is no placement.
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]>, %w: !array.array<f32[16, 8]>) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<data*2>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}
// CHECK: expected `#plan.place<...>`, like `0 data*64, 2 model*8`
