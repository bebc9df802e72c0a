// RUN: partita-opt %s -p to-spmd | filecheck %s
// RUN: partita-opt %s -p fuse,to-spmd | filecheck %s
// RUN: partita-opt %s -p to-flow | filecheck %s --check-prefix=FLOW

// A builder in a builder, and a redistribution of what it builds: all of it is done by one device, in one kernel.

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @main(%x: !array.array<f32[data*2, 8]>) -> !array.array<f32[data*2, model*4]> {
    %0 = array.build (data) {
      %1 = array.slice %x to f32[data*2, 8] : f32[data*2, 8] -> f32[2, 8]
      %2 = lax.tanh %1 : f32[2, 8] -> f32[2, 8]
      %3 = array.build (model) {
        %4 = array.slice %2 to f32[2, model*4] : f32[2, 8] -> f32[2, 4]
        %5 = lax.neg %4 : f32[2, 4] -> f32[2, 4]
        array.yield %5 : f32[2, 4]
      } : f32[2, model*4]
      %6 = array.redistribute %3 : f32[2, model*4] -> f32[2, 8]
      array.yield %6 : f32[2, 8]
    } : f32[data*2, 8]
    %7 = array.build (data, model) {
      %8 = array.slice %0 to f32[data*2, model*4] : f32[data*2, 8] -> f32[2, 4]
      array.yield %8 : f32[2, 4]
    } : f32[data*2, model*4]
    func.return %7 : !array.array<f32[data*2, model*4]>
  }
}

// CHECK:      func.func @main(%0: !array.array<f32[2, 8]>) -> !array.array<f32[2, 4]> {
// CHECK-NEXT:   %1 = lax.tanh %0 : f32[2, 8] -> f32[2, 8]
// CHECK-NEXT:   %2 = spmd.slice %1 dim 1 block 4 over (model) : f32[2, 8] -> f32[2, 4]
// CHECK-NEXT:   %3 = lax.neg %2 : f32[2, 4] -> f32[2, 4]
// CHECK-NEXT:   %4 = spmd.all_gather %3 dim 1 block 4 over (model) : f32[2, 4] -> f32[2, 8]
// CHECK-NEXT:   %5 = spmd.slice %4 dim 1 block 4 over (model) : f32[2, 8] -> f32[2, 4]
// CHECK-NEXT:   func.return %5 : !array.array<f32[2, 4]>

// FLOW:      %1 = flow.kernel @main_0(%0) : f32[data*2, 8] -> f32[data*2, model*4]
// FLOW-NEXT: flow.return %1 : f32[data*2, model*4]
// FLOW:      spmd.all_gather
