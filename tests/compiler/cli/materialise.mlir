// RUN: partita-opt %s --split-input-file -p materialise | filecheck %s
// RUN: partita-opt %s --split-input-file -p materialise,fuse,to-spmd | filecheck %s --check-prefix=SPMD
// RUN: partita-opt %s --split-input-file -p materialise,fuse,to-flow | filecheck %s --check-prefix=FLOW

// A value takes the path that the text says. If it is not the cheapest one, the redistribution says it too.

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 8]> {plan.home = [#plan.home<argument: [data*2, 8]>]}) -> !array.array<f32[8, 8]> {
    %y = lax.cumlogsumexp %x {axis = 0, reverse = False} attributes {plan.place = [#plan.place<1 data*2>], plan.moves = [#plan.move<0: operand 0: [data*2, 8] to [8, data*2] by all_to_all over (data) 0@2 to 1@2>]} : f32[8, 8] -> f32[8, 8]
    func.return %y : !array.array<f32[8, 8]>
  }
}

// CHECK: array.redistribute %0 : f32[data*2, 8] -> f32[8, data*2]

// SPMD:      func.func
// SPMD-NEXT: spmd.all_to_all
// SPMD-NEXT: lax.cumlogsumexp
// SPMD-NEXT: func.return

// FLOW: flow.redistribute %0 : f32[data*2, 8] -> f32[8, data*2]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[8, 8]> {plan.home = [#plan.home<argument: [data*2, 8]>]}) -> !array.array<f32[8, 8]> {
    %y = lax.cumlogsumexp %x {axis = 0, reverse = False} attributes {plan.place = [#plan.place<1 data*2>], plan.moves = [#plan.move<0: operand 0: [data*2, 8] to [8, data*2] by all_gather over (data) 0@2; slice over (data) 1@2>]} : f32[8, 8] -> f32[8, 8]
    func.return %y : !array.array<f32[8, 8]>
  }
}

// CHECK: array.redistribute %0 by <all_gather over (data) 0@2; slice over (data) 1@2> : f32[data*2, 8] -> f32[8, data*2]

// SPMD:      func.func
// SPMD-NEXT: spmd.all_gather
// SPMD-NEXT: spmd.slice
// SPMD-NEXT: lax.cumlogsumexp
// SPMD-NEXT: func.return

// FLOW: flow.redistribute %0 by <all_gather over (data) 0@2; slice over (data) 1@2> : f32[data*2, 8] -> f32[8, data*2]
