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

// A graph on two device sets: the functions of kernels name the meshes.
builtin.module {
  flow.graph @pipe(%x: !array.array<f32[data*64, 8] on left>) -> !array.array<f32[data*32, 8] on right> {
    %0 = flow.kernel @first(%x) : f32[data*64, 8] on left -> f32[data*64, 8] on left
    %1 = flow.transfer %0 : f32[data*64, 8] on left -> f32[data*32, 8] on right
    %2 = flow.kernel @second(%1) : f32[data*32, 8] on right -> f32[data*32, 8] on right
    flow.return %2 : f32[data*32, 8] on right
  }
  func.func @first(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> attributes {array.mesh = "data@left=2"} {
    func.return %x : !array.array<f32[64, 8]>
  }
  func.func @second(%x: !array.array<f32[32, 8]>) -> !array.array<f32[32, 8]> attributes {array.mesh = "data@right=4 of [data@all=8] at 4:8"} {
    func.return %x : !array.array<f32[32, 8]>
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

// CHECK:      flow.graph @pipe(%x: !array.array<f32[data*64, 8] on left>) -> !array.array<f32[data*32, 8] on right> {
// CHECK-NEXT:   %0 = flow.kernel @first(%x) : f32[data*64, 8] on left -> f32[data*64, 8] on left
// CHECK-NEXT:   %1 = flow.transfer %0 : f32[data*64, 8] on left -> f32[data*32, 8] on right
// CHECK-NEXT:   %2 = flow.kernel @second(%1) : f32[data*32, 8] on right -> f32[data*32, 8] on right
