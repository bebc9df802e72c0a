// RUN: partita-opt %s --split-input-file -p move | filecheck %s
// RUN: partita-opt %s --split-input-file -p move,materialise,fuse,to-spmd | filecheck %s --check-prefix=SPMD

// Where a sum resolves is what the text says: after the op that carries it, or before the op that does not. The moves follow.

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]> {plan.home = [#plan.home<argument: [8, data*4]>]}, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<2 data*4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a attributes {plan.sums = [#plan.sum<{+data}>]} : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}

// CHECK:      %b = lax.neg %a attributes {plan.sums = [#plan.sum<{+data}>]}
// CHECK-NEXT: func.return {plan.moves = [#plan.move<0: operand 0: [8, 8]{+data} to [8, 8] by all_reduce add over (data)>]} %b

// SPMD:      lax.dot_general
// SPMD-NEXT: lax.neg
// SPMD-NEXT: spmd.all_reduce

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 16]> {plan.home = [#plan.home<argument: [8, data*4]>]}, %w: !array.array<f32[16, 8]> {plan.home = [#plan.home<argument: [data*4, 8]>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.place = [#plan.place<2 data*4>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.neg %a : f32[8, 8] -> f32[8, 8]
    func.return %b : !array.array<f32[8, 8]>
  }
}

// CHECK:      %b = lax.neg %a attributes {plan.moves = [#plan.move<0: operand 0: [8, 8]{+data} to [8, 8] by all_reduce add over (data)>]}
// CHECK-NEXT: func.return %b

// SPMD:      lax.dot_general
// SPMD-NEXT: spmd.all_reduce
// SPMD-NEXT: lax.neg
