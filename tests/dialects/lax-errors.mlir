// RUN: partita-opt %s --split-input-file --verify-diagnostics | filecheck %s

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[data*64, 8]>) {
    %0 = lax.tanh %x : f32[data*64, 8] -> f32[256, 8]
    func.return
  }
}
// CHECK: `lax.tanh` takes plain arrays, but f32[data*64, 8] is placed or pending

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>, %w: !array.array<f32[16, 8]>) {
    %0 = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[64, 8], f32[16, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `lax.dot_general` does not fit: `k` has extent 8 in dim 1 of `lhs`, and 16 in dim 0 of `rhs`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.tanh %x : f32[64, 8] -> f32[64, 4]
    func.return
  }
}
// CHECK: `lax.tanh` does not fit: `i` has extent 8 in dim 1 of `x`, and 4 in dim 1 of `out`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.reshape %x : f32[64, 8] -> f32[64, 4]
    func.return
  }
}
// CHECK: `lax.reshape` keeps all elements, and f32[64, 8] has 512 where f32[64, 4] has 256

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.reduce_sum %x : f32[64, 8] -> f32[64]
    func.return
  }
}
// CHECK: `lax.reduce_sum` lacks 'axes': it cannot take {} on ['f32[64, 8]']

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.add %x : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `lax.add` has 1 operands where its definition has 2

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.tanh %x {accuracy = None} {
      lax.yield %x : f32[64, 8]
    } : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `lax.tanh` has no body

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f() {
    %0 = lax.constant {value = 1} : bool[]
    func.return
  }
}
// CHECK: `lax.constant`: {value = 1} is not of dtype bool

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f() {
    %0 = lax.constant {value = 300} : u8[]
    func.return
  }
}
// CHECK: `lax.constant`: {value = 300} is not of dtype u8

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f() {
    %0 = lax.constant {value = 0.5} : i32[]
    func.return
  }
}
// CHECK: `lax.constant`: {value = 0.5} is not of dtype i32

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f() {
    %0 = lax.constant {value = True} : f32[]
    func.return
  }
}
// CHECK: `lax.constant`: {value = True} is not of dtype f32

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f() {
    %0 = lax.constant {value = 0.5} : f32[8]
    func.return
  }
}
// CHECK: `lax.constant` has a `value`, no operands and one result of rank 0

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.whole %x : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `lax.whole` says which primitive it stands for: `{primitive = "name"}`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {num_carry = 1, num_consts = 0} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %a, %b : f32[], f32[3]
    } : f32[], f32[5, 3] -> f32[], f32[5, 3]
    func.return
  }
}
// CHECK: `lax.scan`: `length` must be an integer, 0 or more

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {length = 6, num_carry = 1, num_consts = 0} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %a, %b : f32[], f32[3]
    } : f32[], f32[5, 3] -> f32[], f32[5, 3]
    func.return
  }
}
// CHECK: `lax.scan`: operand 1 is f32[5, 3], and argument 1 of the body, f32[3], over 6 trips wants f32[6, 3]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {length = 5, num_carry = 2, num_consts = 0} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %a, %b : f32[], f32[3]
    } : f32[], f32[5, 3] -> f32[], f32[5, 3]
    func.return
  }
}
// CHECK: `lax.scan`: operand 1 is f32[5, 3], and argument 1 of the body, f32[3], over 5 trips wants f32[3]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {length = 5, num_carry = 0, num_consts = 3} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %a, %b : f32[], f32[3]
    } : f32[], f32[5, 3] -> f32[], f32[5, 3]
    func.return
  }
}
// CHECK: `lax.scan`: 3 consts and 0 carries, and a body of 2 arguments

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {length = 5, num_carry = 1, num_consts = 0, reverse = False, unroll = 1} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %a : f32[]
    } : f32[], f32[5, 3] -> f32[], f32[5, 3]
    func.return
  }
}
// CHECK: `lax.scan`: 2 results and 1 values that the body yields

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {length = 5, num_carry = 1, num_consts = 0, reverse = False, unroll = 1} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %b, %b : f32[3], f32[3]
    } : f32[], f32[5, 3] -> f32[], f32[5, 3]
    func.return
  }
}
// CHECK: `lax.scan`: result 0 is f32[], and the body yields f32[3], which over 5 trips gives f32[3]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {length = 5, num_carry = 1, num_consts = 0, reverse = False, unroll = 1} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %a, %b : f32[], f32[3]
    } : f32[], f32[5, 3] -> f32[], f32[4, 3]
    func.return
  }
}
// CHECK: `lax.scan`: result 1 is f32[4, 3], and the body yields f32[3], which over 5 trips gives f32[5, 3]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%c: !array.array<f32[]>, %xs: !array.array<f32[5, 3]>) {
    %s, %ys = lax.scan %c, %xs {length = 5, num_carry = 1, num_consts = 0, reverse = False, unroll = 1} {
    ^bb0(%a: !array.array<f32[]>, %b: !array.array<f32[3]>):
      lax.yield %b, %b : f32[3], f32[3]
    } : f32[], f32[5, 3] -> f32[3], f32[5, 3]
    func.return
  }
}
// CHECK: `lax.scan`: carry 0 begins a trip as f32[] and ends it as f32[3]

// -----
builtin.module {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.transpose %x {permutation = ("x", 0)} : f32[64, 8] -> f32[8, 64]
    func.return
  }
}
// CHECK: `lax.transpose` does not take an array of shape (64, 8) as `src`

// -----
builtin.module {
  func.func @f() {
    %0 = lax.concatenate {dimension = 0} : f32[64, 8]
    func.return
  }
}
// CHECK: `lax.concatenate`: the results ['f32[64, 8]'] have other ranks than its definition

// -----
builtin.module {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = lax.dot_general %x, %x {dimension_numbers = ()} : f32[64, 8], f32[64, 8] -> f32[64, 64]
    func.return
  }
}
// CHECK: `lax.dot_general` cannot take {dimension_numbers = ()} on ['f32[64, 8]', 'f32[64, 8]']

// -----
builtin.module {
  func.func @f(%n: !array.array<i32[]>) {
    %m = lax.while %n {body_nconsts = 0, cond_nconsts = 0} {
    ^bb0(%i: !array.array<i32[]>):
      lax.yield %i : i32[]
    } {
    ^bb1(%j: !array.array<i32[]>):
      lax.yield %j : i32[]
    } : i32[] -> i32[]
    func.return
  }
}
// CHECK: `lax.while`: the condition yields one bool[], not i32[]

// -----
builtin.module {
  func.func @f(%n: !array.array<i32[]>, %b: !array.array<bool[]>) {
    %m = lax.while %b, %n {body_nconsts = 0, cond_nconsts = 1} {
    ^bb0(%t: !array.array<bool[]>, %i: !array.array<i32[]>):
      lax.yield %t : bool[]
    } {
    ^bb1(%j: !array.array<f32[]>):
      lax.yield %j : f32[]
    } : bool[], i32[] -> i32[]
    func.return
  }
}
// CHECK: `lax.while`: number 0 of the arguments of the body is f32[], of the operands for it i32[]

// -----
builtin.module {
  func.func @f(%n: !array.array<i32[]>) {
    %m = lax.while %n {body_nconsts = 3, cond_nconsts = 0} {
    ^bb0(%i: !array.array<i32[]>):
      lax.yield %i : i32[]
    } {
    ^bb1(%j: !array.array<i32[]>):
      lax.yield %j : i32[]
    } : i32[] -> i32[]
    func.return
  }
}
// CHECK: `lax.while`: 0 and 3 consts, and 1 operands

// -----
builtin.module {
  func.func @f(%n: !array.array<i32[]>) {
    %m = lax.while %n {body_nconsts = 0, cond_nconsts = 0} {
    ^bb0(%i: !array.array<i32[]>):
      lax.yield %i : i32[]
    } : i32[] -> i32[]
    func.return
  }
}
// CHECK: `lax.while` has two regions, which end in `lax.yield`

// -----
builtin.module {
  func.func @f(%n: !array.array<f32[]>) {
    %m = lax.cond %n, %n {} {
    ^bb0(%i: !array.array<f32[]>):
      lax.yield %i : f32[]
    } : f32[], f32[] -> f32[]
    func.return
  }
}
// CHECK: `lax.cond`: the first operand is an i32[], the branch's number, not f32[]

// -----
builtin.module {
  func.func @f(%n: !array.array<i32[]>, %x: !array.array<f32[]>) {
    %m = lax.cond %n, %x {} {
    ^bb0(%i: !array.array<f32[]>):
      lax.yield %i : f32[]
    } {
    ^bb1(%j: !array.array<f32[]>):
      lax.yield : ()
    } : i32[], f32[] -> f32[]
    func.return
  }
}
// CHECK: `lax.cond`: 0 values that branch 1 yields and 1 results
