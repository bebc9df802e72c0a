// RUN: partita-opt %s -p propagate | filecheck %s
// RUN: partita-opt %s -p propagate,propagate | partita-opt | filecheck %s

// Two tactics, one after the other: the batch is on `data`, the columns of the weight on `model`.

builtin.module attributes {array.mesh = "data=4, model=2", plan.tactics = ["tile('x', 0, 'data')", "tile('w', 1, 'model')"]} {
  func.func @main(%x: !array.array<f32[8, 16]> {plan.own = [#plan.own<argument: 0 data*2 by 1>]}, %w: !array.array<f32[16, 8]> {plan.own = [#plan.own<argument: 1 model*4 by 2>]}) -> !array.array<f32[8]> {
    %h = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %y = lax.tanh %h : f32[8, 8] -> f32[8, 8]
    %r = lax.reduce_sum %y {axes = (1,)} : f32[8, 8] -> f32[8]
    func.return %r : !array.array<f32[8]>
  }
}

// CHECK:      func.func @main(%x: !array.array<f32[8, 16]> {plan.own = [#plan.own<argument: 0 data*2 by 1>]}, %w: !array.array<f32[16, 8]> {plan.own = [#plan.own<argument: 1 model*4 by 2>]})
// CHECK-NEXT:   lax.dot_general {{.*}} attributes {plan.claims = [#plan.claim<0 data*2 by 1>, #plan.claim<1 model*4 by 2>]}
// CHECK-NEXT:   lax.tanh {{.*}} attributes {plan.claims = [#plan.claim<0 data*2 by 1>, #plan.claim<1 model*4 by 2>]}
// CHECK-NEXT:   lax.reduce_sum {{.*}} attributes {plan.claims = [#plan.claim<0 data*2 by 1>, #plan.claim<1 model*4 by 2>]}
// CHECK-NEXT:   func.return %r
