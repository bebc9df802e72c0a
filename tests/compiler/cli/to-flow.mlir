// RUN: partita-opt %s -p to-flow | filecheck %s
// RUN: partita-opt %s -p fuse,to-flow | partita-opt | filecheck %s
// RUN: partita-opt %s -p 'to-flow{granularity="whole"}' | filecheck %s --check-prefix=WHOLE

// Two equal layers: a gather before each, one function for both, and the constant in it although the first builder makes it.

builtin.module attributes {array.mesh = "data=4"} {
  func.func @main(%x: !array.array<f32[data*2, 8]>, %v: !array.array<f32[data*2]>, %w: !array.array<f32[data*2]>) -> !array.array<f32[data*2, 8]> {
    %0 = array.redistribute %v : f32[data*2] -> f32[8]
    %1, %half = array.build (data) {
      %2 = array.slice %x to f32[data*2, 8] : f32[data*2, 8] -> f32[2, 8]
      %3 = lax.broadcast_in_dim %0 {broadcast_dimensions = (1,)} : f32[8] -> f32[2, 8]
      %4 = lax.constant {value = 0.5} : f32[]
      %5 = lax.mul %2, %3 : f32[2, 8], f32[2, 8] -> f32[2, 8]
      %6 = lax.mul %5, %4 : f32[2, 8], f32[] -> f32[2, 8]
      array.yield %6, %4 : f32[2, 8], f32[]
    } : f32[data*2, 8], f32[]
    %7, %8 = array.barrier %w, %1 : f32[data*2], f32[data*2, 8] -> f32[data*2], f32[data*2, 8]
    %9 = array.redistribute %7 : f32[data*2] -> f32[8]
    %10 = array.build (data) {
      %11 = array.slice %1 to f32[data*2, 8] : f32[data*2, 8] -> f32[2, 8]
      %12 = lax.broadcast_in_dim %9 {broadcast_dimensions = (1,)} : f32[8] -> f32[2, 8]
      %13 = lax.mul %11, %12 : f32[2, 8], f32[2, 8] -> f32[2, 8]
      %14 = lax.mul %13, %half : f32[2, 8], f32[] -> f32[2, 8]
      array.yield %14 : f32[2, 8]
    } : f32[data*2, 8]
    func.return %10 : !array.array<f32[data*2, 8]>
  }
}

// CHECK:      flow.graph @main(%0: !array.array<f32[data*2, 8]>, %1: !array.array<f32[data*2]>, %2: !array.array<f32[data*2]>) -> !array.array<f32[data*2, 8]> {
// CHECK-NEXT:   %3 = flow.redistribute %1 : f32[data*2] -> f32[8]
// CHECK-NEXT:   %4 = flow.kernel @main_0(%3, %0) : f32[8], f32[data*2, 8] -> f32[data*2, 8]
// CHECK-NEXT:   %5, %6 = flow.barrier %2, %4 : f32[data*2], f32[data*2, 8] -> f32[data*2], f32[data*2, 8]
// CHECK-NEXT:   %7 = flow.redistribute %5 : f32[data*2] -> f32[8]
// CHECK-NEXT:   %8 = flow.kernel @main_0(%7, %4) : f32[8], f32[data*2, 8] -> f32[data*2, 8]
// CHECK-NEXT:   flow.return %8 : f32[data*2, 8]
// CHECK-NEXT: }
// CHECK-NEXT: func.func @main_0(%0: !array.array<f32[8]>, %1: !array.array<f32[2, 8]>) -> !array.array<f32[2, 8]> {
// CHECK-NEXT:   %2 = lax.constant {value = 0.5} : f32[]
// CHECK-NEXT:   %3 = lax.broadcast_in_dim %0 {broadcast_dimensions = (1,)} : f32[8] -> f32[2, 8]
// CHECK-NEXT:   %4 = lax.mul %1, %3 : f32[2, 8], f32[2, 8] -> f32[2, 8]
// CHECK-NEXT:   %5 = lax.mul %4, %2 : f32[2, 8], f32[] -> f32[2, 8]
// CHECK-NEXT:   func.return %5 : !array.array<f32[2, 8]>
// CHECK-NEXT: }
// CHECK-NOT:  func.func

// WHOLE:      %3 = flow.kernel @main_0(%0, %1, %2) : f32[data*2, 8], f32[data*2], f32[data*2] -> f32[data*2, 8]
// WHOLE-NEXT: flow.return %3 : f32[data*2, 8]
// WHOLE:      spmd.all_gather %1 dim 0 block 2 over (data) : f32[2] -> f32[8]
// WHOLE:      spmd.barrier
// WHOLE:      spmd.all_gather {{%[0-9]+}} dim 0 block 2 over (data) : f32[2] -> f32[8]
