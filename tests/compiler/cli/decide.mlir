// RUN: partita-opt %s -p decide | filecheck %s
// RUN: partita-opt %s -p decide | partita-opt | filecheck %s
// RUN: partita-opt %s -p decide,materialise | filecheck %s --check-prefix=PLACED
// RUN: partita-opt %s -p decide,materialise,fuse,to-spmd | filecheck %s --check-prefix=SPMD

// Two sums over `data` meet in an addition, which carries them: one all_reduce. The weight is stored in parts by the second tactic.

builtin.module attributes {array.mesh = "data=4", plan.tactics = ["tile('x', 1, 'data')", "tile('v', 0, 'data')"]} {
  func.func @main(%x: !array.array<f32[8, 16]> {plan.own = [#plan.own<argument: 1 data*4 by 1>]}, %w: !array.array<f32[16, 8]>, %v: !array.array<f32[8, 8]> {plan.own = [#plan.own<argument: 0 data*2 by 2>]}) -> !array.array<f32[8, 8]> {
    %a = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.claims = [#plan.claim<2 data*4 by 1>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %b = lax.dot_general %x, %w {dimension_numbers = (((1,), (0,)), ((), ()))} attributes {plan.claims = [#plan.claim<2 data*4 by 1>]} : f32[8, 16], f32[16, 8] -> f32[8, 8]
    %c = lax.add %a, %b : f32[8, 8], f32[8, 8] -> f32[8, 8]
    %d = lax.dot_general %c, %v {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 8], f32[8, 8] -> f32[8, 8]
    func.return %d : !array.array<f32[8, 8]>
  }
}

// CHECK:      func.func @main(%x: !array.array<f32[8, 16]> {plan.home = [#plan.home<argument: [8, data*4]>]}, %w: !array.array<f32[16, 8]>, %v: !array.array<f32[8, 8]> {plan.home = [#plan.home<argument: [data*2, 8]>]})
// CHECK-NEXT:   %a = lax.dot_general {{.*}} attributes {plan.place = [#plan.place<2 data*4>], plan.moves = [#plan.move<0: operand 1: [16, 8] to [data*4, 8] by slice over (data) 0@4, because of 1>]}
// CHECK-NEXT:   %b = lax.dot_general {{.*}} attributes {plan.place = [#plan.place<2 data*4>], plan.reads = [#plan.read<operand 1 after 0>]}
// CHECK-NEXT:   %c = lax.add %a, %b attributes {plan.sums = [#plan.sum<{+data}>]}
// CHECK-NEXT:   %d = lax.dot_general {{.*}} attributes {plan.moves = [#plan.move<1: operand 0: [8, 8]{+data} to [8, 8] by all_reduce add over (data), because of 1>, #plan.move<2: operand 1: [data*2, 8] to [8, 8] by all_gather over (data) 0@2, alone, because of 2>]}

// PLACED:      %3 = array.build (data) {
// PLACED:        array.slice %1 to f32[data*4, 8] : f32[16, 8] -> f32[4, 8]
// PLACED:      lax.add
// PLACED-NEXT: array.yield
// PLACED-NEXT: } : f32[8, 8]{+data}
// PLACED-NEXT: %15 = array.redistribute %11 : f32[8, 8]{+data} -> f32[8, 8]
// PLACED-NEXT: %16 = array.redistribute %2 : f32[data*2, 8] -> f32[8, 8]
// PLACED-NEXT: lax.dot_general %15, %16

// SPMD:      lax.add
// SPMD-NEXT: %8 = spmd.all_reduce add %7 over (data) : f32[8, 8] -> f32[8, 8]
// SPMD-NEXT: %9 = spmd.all_gather %2 dim 0 block 2 over (data) : f32[2, 8] -> f32[8, 8]
// SPMD-NOT:  spmd.all_reduce
