// RUN: partita-opt %s --split-input-file --parsing-diagnostics --verify-diagnostics | filecheck %s

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[data*64, 8]>) {
    %0 = spmd.all_reduce add %x over (data) : f32[data*64, 8] -> f32[data*64, 8]
    func.return
  }
}
// CHECK: `spmd.all_reduce` takes local arrays, but f32[data*64, 8] is placed or pending

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_reduce avg %x over (data) : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `spmd.all_reduce`: `avg` is not a monoid, take one of add, mul, max, min, and, or, xor

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_reduce add %x over (batch) : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK:      %0 = spmd.all_reduce add %x over (batch) : f32[64, 8] -> f32[64, 8]
// CHECK-NEXT:                                  ^^^^^^^
// CHECK-NEXT:                                  the mesh has no axis `batch`
// CHECK-NEXT: help: the mesh has `data`, `model`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_reduce add %x over (data, data) : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `spmd.all_reduce` names a mesh axis twice: (data, data)

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_reduce add %x over (data) : f32[64, 8] -> f32[16, 8]
    func.return
  }
}
// CHECK: `spmd.all_reduce` of f32[64, 8] over 4 devices is f32[64, 8], not f32[16, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_reduce add %x over (data) : f32[64, 8] -> bf16[64, 8]
    func.return
  }
}
// CHECK: `spmd.all_reduce` of f32[64, 8] over 4 devices is f32[64, 8], not bf16[64, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_gather %x dim 0 block 64 over (data, model) : f32[64, 8] -> f32[256, 8]
    func.return
  }
}
// CHECK: `spmd.all_gather` of f32[64, 8] over 8 devices is f32[512, 8], not f32[256, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_gather %x dim 2 block 64 over (data) : f32[64, 8] -> f32[256, 8]
    func.return
  }
}
// CHECK: `spmd.all_gather`: f32[64, 8] has no dim 2

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_gather %x dim 0 block 0 over (data) : f32[64, 8] -> f32[256, 8]
    func.return
  }
}
// CHECK: `spmd.all_gather`: a block holds at least one element, not 0

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_gather %x dim 1 block 3 over (data) : f32[64, 8] -> f32[64, 32]
    func.return
  }
}
// CHECK: `spmd.all_gather`: dim 1 of f32[64, 8] is 8, which blocks of 3 do not divide

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.reduce_scatter add %x dim 1 block 4 over (data) : f32[64, 8] -> f32[64, 2]
    func.return
  }
}
// CHECK: `spmd.reduce_scatter`: dim 1 of f32[64, 8] is 8, which 4 devices with blocks of 4 do not divide

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_to_all %x split 0 block 32 concat 1 block 8 over (data) : f32[64, 8] -> f32[16, 32]
    func.return
  }
}
// CHECK: `spmd.all_to_all`: dim 0 of f32[64, 8] is 64, which 4 devices with blocks of 32 do not divide

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.all_to_all %x split 0 block 16 concat 1 block 5 over (data) : f32[64, 8] -> f32[16, 32]
    func.return
  }
}
// CHECK: `spmd.all_to_all`: dim 1 of f32[16, 8] is 8, which blocks of 5 do not divide

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.permute %x over (model) pairs [(0, 2)] : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `spmd.permute`: device 2 receives, and the group has 2

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.permute %x over (data) pairs [(1, 0), (1, 2)] : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `spmd.permute`: device 1 sends more than once

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.slice %x dim 1 block 2 over (data, model) : f32[64, 8] -> f32[64, 1]
    func.return
  }
}
// CHECK: `spmd.slice`: dim 1 of f32[64, 8] is 8, which 8 devices with blocks of 2 do not divide

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.coordinate (expert) : i32[]
    func.return
  }
}
// CHECK: the mesh has no axis `expert`
// CHECK-NEXT: help: the mesh has `data`, `model`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.barrier %x : f32[64, 8] -> f32[8, 64]
    func.return
  }
}
// CHECK: `spmd.barrier` returns its operands unchanged: their types must match

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.pick %x dim 1 over (model) rows [(0, 1)] : f32[64, 8] -> f32[64, 2]
    func.return
  }
}
// CHECK: `spmd.pick`: 2 devices need a list of rows each, all of one length

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.pick %x dim 1 over (model) rows [(0, 1), (2,)] : f32[64, 8] -> f32[64, 2]
    func.return
  }
}
// CHECK: `spmd.pick`: 2 devices need a list of rows each, all of one length

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = spmd.pick %x dim 1 over (model) rows [(0, 1), (2, 8)] : f32[64, 8] -> f32[64, 2]
    func.return
  }
}
// CHECK: `spmd.pick`: dim 1 of f32[64, 8] has no row 8
