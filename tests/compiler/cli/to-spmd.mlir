// RUN: partita-opt %s -p fuse | filecheck %s --check-prefix=FUSE
// RUN: partita-opt %s -p fuse,to-spmd | filecheck %s --check-prefix=SPMD

// Two builders that meet are one, and what the reducer leaves is the collective.

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[data*2, model*4]>) -> !array.array<f32[data*2]> {
    %0 = array.build (data, model) {
      %1 = array.slice %x to f32[data*2, model*4] : f32[data*2, model*4] -> f32[2, 4]
      %2 = lax.tanh %1 : f32[2, 4] -> f32[2, 4]
      array.yield %2 : f32[2, 4]
    } : f32[data*2, model*4]
    %3 = array.build (data, model) {
      %4 = array.slice %0 to f32[data*2, model*4] : f32[data*2, model*4] -> f32[2, 4]
      %5 = lax.reduce_sum %4 {axes = (1,)} : f32[2, 4] -> f32[2]
      array.yield %5 : f32[2]
    } : f32[data*2]{+model}
    %6 = array.redistribute %3 : f32[data*2]{+model} -> f32[data*2]
    func.return %6 : !array.array<f32[data*2]>
  }
}

// FUSE:      %1 = array.build (data, model) {
// FUSE-NEXT:   %2 = array.slice %0 to f32[data*2, model*4] : f32[data*2, model*4] -> f32[2, 4]
// FUSE-NEXT:   %3 = lax.tanh %2 : f32[2, 4] -> f32[2, 4]
// FUSE-NEXT:   %4 = lax.reduce_sum %3 {axes = (1,)} : f32[2, 4] -> f32[2]
// FUSE-NEXT:   array.yield %4 : f32[2]
// FUSE-NEXT: } : f32[data*2]{+model}
// FUSE-NOT:  array.build

// SPMD:      func.func @main(%0: !array.array<f32[2, 4]>) -> !array.array<f32[2]> {
// SPMD-NEXT:   %1 = lax.tanh %0 : f32[2, 4] -> f32[2, 4]
// SPMD-NEXT:   %2 = lax.reduce_sum %1 {axes = (1,)} : f32[2, 4] -> f32[2]
// SPMD-NEXT:   %3 = spmd.all_reduce add %2 over (model) : f32[2] -> f32[2]
// SPMD-NEXT:   func.return %3 : !array.array<f32[2]>
