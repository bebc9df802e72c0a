// RUN: partita-opt %s | filecheck %s
// RUN: partita-opt %s | partita-opt --print-op-generic | partita-opt | filecheck %s
// RUN: partita-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @builders(%x: !array.array<f32[256, 8]>, %w: !array.array<bf16[8, model*8]>) -> !array.array<f32[data*64, 8]> {
    %y, %z = array.build (data, model) {
      %0 = array.slice %x to f32[data*64, 8] : f32[256, 8] -> f32[64, 8]
      %1 = array.slice %w to bf16[8, model*8] : bf16[8, model*8] -> bf16[8, 8]
      %2 = lax.convert_element_type %1 {new_dtype = dtype(name="float32"), weak_type = False} : bf16[8, 8] -> f32[8, 8]
      %3 = lax.dot_general %0, %2 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[64, 8], f32[8, 8] -> f32[64, 8]
      %4 = array.coordinate (data, model) : i32[]
      %5, %6 = array.barrier %3, %4 : f32[64, 8], i32[] -> f32[64, 8], i32[]
      array.yield %5, %6 : f32[64, 8], i32[]
    } : f32[data*64, 8]{+model}, i32[]{max data, +model}
    %7 = array.redistribute %y attributes {tactic = "DataParallel"} : f32[data*64, 8]{+model} -> f32[data*64, 8]
    func.return %7 : !array.array<f32[data*64, 8]>
  }
}

// CHECK:      builtin.module attributes {array.mesh = "data=4, model=2"} {
// CHECK-NEXT:   func.func @builders(%x: !array.array<f32[256, 8]>, %w: !array.array<bf16[8, model*8]>) -> !array.array<f32[data*64, 8]> {
// CHECK-NEXT:     %y, %z = array.build (data, model) {
// CHECK-NEXT:       %0 = array.slice %x to f32[data*64, 8] : f32[256, 8] -> f32[64, 8]
// CHECK-NEXT:       %1 = array.slice %w to bf16[8, model*8] : bf16[8, model*8] -> bf16[8, 8]
// CHECK-NEXT:       %2 = lax.convert_element_type %1 {new_dtype = dtype(name="float32"), weak_type = False} : bf16[8, 8] -> f32[8, 8]
// CHECK-NEXT:       %3 = lax.dot_general %0, %2 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[64, 8], f32[8, 8] -> f32[64, 8]
// CHECK-NEXT:       %4 = array.coordinate (data, model) : i32[]
// CHECK-NEXT:       %5, %6 = array.barrier %3, %4 : f32[64, 8], i32[] -> f32[64, 8], i32[]
// CHECK-NEXT:       array.yield %5, %6 : f32[64, 8], i32[]
// CHECK-NEXT:     } : f32[data*64, 8]{+model}, i32[]{max data, +model}
// CHECK-NEXT:     %7 = array.redistribute %y attributes {tactic = "DataParallel"} : f32[data*64, 8]{+model} -> f32[data*64, 8]
// CHECK-NEXT:     func.return %7 : !array.array<f32[data*64, 8]>
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: "array.build"() <{place = #array.axes<(data, model)>}> ({
// GENERIC: "array.slice"(%x) <{target = !array.array<f32[data*64, 8]>}> : (!array.array<f32[256, 8]>) -> !array.array<f32[64, 8]>
// GENERIC: "lax.convert_element_type"(%1) <{params = #lax.params<{new_dtype = dtype(name="float32"), weak_type = False}>}>
