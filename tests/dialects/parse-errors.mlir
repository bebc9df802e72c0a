// RUN: partita-opt %s --split-input-file --parsing-diagnostics | filecheck %s

func.func @f(%x: !array.array<f32[8]>) {
  %0 = lax.add %x, %x : f32[8] -> f32[8]
  func.return
}
// CHECK:      %0 = lax.add %x, %x : f32[8] -> f32[8]
// CHECK-NEXT:                       ^^^^^^^
// CHECK-NEXT:                       2 operands and 1 types for them

// -----
func.func @f(%x: !array.array<f32[8]>) {
  %0 = lax.reduce_sum %x {axes = 0 + 1} : f32[8] -> f32[]
  func.return
}
// CHECK:      %0 = lax.reduce_sum %x {axes = 0 + 1} : f32[8] -> f32[]
// CHECK-NEXT:                        ^^^^^^^^^^^^^^
// CHECK-NEXT:                        these parameters cannot be read: `0 + 1` is not a literal

// -----
func.func @f(%x: !array.array<f32[8]>) {
  %0 = lax.reduce_sum %x {axes = (0,} : f32[8] -> f32[]
  func.return
}
// CHECK:      %0 = lax.reduce_sum %x {axes = (0,} : f32[8] -> f32[]
// CHECK-NEXT:                        ^^^^^^^^^^^
// CHECK-NEXT:                        these parameters cannot be read: '(' was never closed

// -----
func.func @f(%x: !array.array<f32[8]>) {
  %0 = lax.neg %x : f32 -> f32[]
  func.return
}
// CHECK:      %0 = lax.neg %x : f32 -> f32[]
// CHECK-NEXT:                   ^^^
// CHECK-NEXT:                   expected an array type, like `f32[data*128, 256]`

// -----
func.func @f(%x: !array.array<f32[8 *]>) {
  func.return
}
// CHECK:      func.func @f(%x: !array.array<f32[8 *]>) {
// CHECK-NEXT:                               ^^^^^^^^

// -----
func.func @f(%x: !array.array<f32[8]>) {
  %0 = spmd.all_reduce add %x over data : f32[8] -> f32[8]
  func.return
}
// CHECK: expected mesh axes, like `(data, model)`

// -----
builtin.module attributes {array.mesh = "data=2"} {
  func.func @f(%x: !array.array<f32[8]>) {
    %0 = spmd.permute %x over (data) pairs [(0, 1, 2)] : f32[8] -> f32[8]
    func.return
  }
}
// CHECK: expected pairs of devices, like `[(0, 1), (1, 0)]`

// -----
builtin.module attributes {array.mesh = "data=2"} {
  func.func @f(%x: !array.array<f32[8]>) {
    %0 = spmd.pick %x dim 0 over (data) rows [0, 1] : f32[8] -> f32[8]
    func.return
  }
}
// CHECK: expected a list of rows for each device, like `[(0, 1), (2, 3)]`
