// RUN: partita-opt %s | filecheck %s
// RUN: partita-opt %s | partita-opt --print-op-generic | partita-opt | filecheck %s

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @step_0(%x: !array.array<f32[64, 8]>, %n: !array.array<i32[]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  func.func @count() -> !array.array<i32[]> {
    %0 = lax.constant {value = 3} : i32[]
    func.return %0 : !array.array<i32[]>
  }
  flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[256, 8]> attributes {arg_names = ["x"]} {
    %n = flow.kernel @count() : i32[]
    %0 = flow.kernel @step_0(%x, %n) attributes {stage = 0 : i64} : f32[data*64, 8], i32[] -> f32[data*64, 8]{+model}
    %1 = flow.redistribute %0 : f32[data*64, 8]{+model} -> f32[256, 8]
    flow.return %1 : f32[256, 8]
  }
  flow.graph @nothing() {
    flow.return : ()
  }
}

// CHECK:      flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[256, 8]> attributes {arg_names = ["x"]} {
// CHECK-NEXT:   %n = flow.kernel @count() : i32[]
// CHECK-NEXT:   %0 = flow.kernel @step_0(%x, %n) attributes {stage = 0 : i64} : f32[data*64, 8], i32[] -> f32[data*64, 8]{+model}
// CHECK-NEXT:   %1 = flow.redistribute %0 : f32[data*64, 8]{+model} -> f32[256, 8]
// CHECK-NEXT:   flow.return %1 : f32[256, 8]
// CHECK-NEXT: }
// CHECK-NEXT: flow.graph @nothing()
// CHECK-NEXT:   flow.return : ()
