// RUN: partita-opt %s | filecheck %s
// RUN: partita-opt %s | partita-opt --print-op-generic | partita-opt | filecheck %s

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @kernel(%x: !array.array<f32[64, 8]>, %y: !array.array<bool[16]>) {
    %0 = spmd.all_reduce add %x over (data, model) attributes {steps = 1 : i64} : f32[64, 8] -> f32[64, 8]
    %1 = spmd.all_gather %x dim 0 block 16 over (data) : f32[64, 8] -> f32[256, 8]
    %2 = spmd.reduce_scatter max %x dim 1 block 2 over (data) : f32[64, 8] -> f32[64, 2]
    %3 = spmd.all_to_all %x split 0 block 4 concat 1 block 8 over (data) : f32[64, 8] -> f32[16, 32]
    %4 = spmd.all_to_all %x split 0 block 1 concat 0 block 16 over (data) : f32[64, 8] -> f32[64, 8]
    %5 = spmd.permute %y over (model) pairs [(0, 1), (1, 0)] : bool[16] -> bool[16]
    %6 = spmd.permute %y over (model) pairs [] : bool[16] -> bool[16]
    %7 = spmd.slice %y dim 0 block 2 over (model, data) : bool[16] -> bool[2]
    %8 = spmd.coordinate (model) : i32[]
    %9, %10 = spmd.barrier %7, %8 : bool[2], i32[] -> bool[2], i32[]
    %11 = spmd.pick %y dim 0 over (model) rows [(15, 0, 0), (1, 2, 3)] : bool[16] -> bool[3]
    func.return
  }
}

// CHECK:      %0 = spmd.all_reduce add %x over (data, model) attributes {steps = 1 : i64} : f32[64, 8] -> f32[64, 8]
// CHECK-NEXT: %1 = spmd.all_gather %x dim 0 block 16 over (data) : f32[64, 8] -> f32[256, 8]
// CHECK-NEXT: %2 = spmd.reduce_scatter max %x dim 1 block 2 over (data) : f32[64, 8] -> f32[64, 2]
// CHECK-NEXT: %3 = spmd.all_to_all %x split 0 block 4 concat 1 block 8 over (data) : f32[64, 8] -> f32[16, 32]
// CHECK-NEXT: %4 = spmd.all_to_all %x split 0 block 1 concat 0 block 16 over (data) : f32[64, 8] -> f32[64, 8]
// CHECK-NEXT: %5 = spmd.permute %y over (model) pairs [(0, 1), (1, 0)] : bool[16] -> bool[16]
// CHECK-NEXT: %6 = spmd.permute %y over (model) pairs [] : bool[16] -> bool[16]
// CHECK-NEXT: %7 = spmd.slice %y dim 0 block 2 over (model, data) : bool[16] -> bool[2]
// CHECK-NEXT: %8 = spmd.coordinate (model) : i32[]
// CHECK-NEXT: %9, %10 = spmd.barrier %7, %8 : bool[2], i32[] -> bool[2], i32[]
// CHECK-NEXT: %11 = spmd.pick %y dim 0 over (model) rows [(15, 0, 0), (1, 2, 3)] : bool[16] -> bool[3]
