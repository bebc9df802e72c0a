// RUN: partita-opt %s --split-input-file --parsing-diagnostics --verify-diagnostics | filecheck %s

func.func @no_mesh(%x: !array.array<f32[data*64, 8]>) {
  %0 = array.redistribute %x : f32[data*64, 8] -> f32[256, 8]
  func.return
}
// CHECK:      func.func @no_mesh(%x: !array.array<f32[data*64, 8]>) {
// CHECK-NEXT:                                     ^^^^^^^^^^^^^^^
// CHECK-NEXT:                                     `data` is an axis of no mesh
// CHECK-NEXT: help: write `builtin.module attributes {array.mesh = "data=4"} { ... }` around it

// -----
builtin.module attributes {array.mesh = "data=four"} {
  func.func @f(%x: !array.array<f32[data*64, 8]>) {
    %0 = array.redistribute %x : f32[data*64, 8] -> f32[256, 8]
    func.return
  }
}
// CHECK:      builtin.module attributes {array.mesh = "data=four"} {
// CHECK-NEXT:                                          ^^^^^^^^^
// CHECK-NEXT:                                          `array.mesh = "data=four"` is not a mesh: `data=four` is not a mesh axis
// CHECK-NEXT: help: write a mesh as `data=4, model=2`

// -----
builtin.module attributes {array.mesh = "data=4"} {
  func.func @f(%x: !array.array<f32[data*64, 8]>) {
    %0 = array.redistribute %x : f32[data*64, 8] -> bf16[256, 8]
    func.return
  }
}
// CHECK: `array.redistribute` changes layouts, not element types: f32[data*64, 8] to bf16[256, 8]

// -----
builtin.module attributes {array.mesh = "data=4"} {
  func.func @f(%x: !array.array<f32[data*64, 8]>) {
    %0 = array.redistribute %x : f32[data*64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `array.redistribute` changes layouts, not shapes: f32[data*64, 8] is [256, 8] as a whole, f32[64, 8] is [64, 8]

// -----
builtin.module attributes {array.mesh = "data=4"} {
  func.func @f(%x: !array.array<f32[model*64, 8]>) {
    %0 = array.redistribute %x : f32[model*64, 8] -> f32[256, 8]
    func.return
  }
}
// CHECK:      func.func @f(%x: !array.array<f32[model*64, 8]>) {
// CHECK-NEXT:                               ^^^^^^^^^^^^^^^^
// CHECK-NEXT:                               the mesh has no axis `model`
// CHECK-NEXT: help: the mesh has `data`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]{+model}>) {
    %0 = array.redistribute %x : f32[256, 8]{+model} -> f32[256, 8]{+data}
    func.return
  }
}
// CHECK: `array.redistribute` resolves pending reductions, but f32[256, 8]{+data} adds one over `data`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.build (data, data) {
      array.yield %x : f32[256, 8]
    } : f32[256, 8]
    func.return
  }
}
// CHECK: `array.build` names a mesh axis twice: (data, data)

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.build (modle) {
      array.yield %x : f32[256, 8]
    } : f32[256, 8]
    func.return
  }
}
// CHECK:      %0 = array.build (modle) {
// CHECK-NEXT:                  ^^^^^^^
// CHECK-NEXT:                  the mesh has no axis `modle`
// CHECK-NEXT: help: did you mean `model`?

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.build (data) {
      %1 = array.build (model, data) {
        array.yield %x : f32[256, 8]
      } : f32[256, 8]
      array.yield %1 : f32[256, 8]
    } : f32[256, 8]
    func.return
  }
}
// CHECK: a build around this one iterates over `data` already

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = array.build (model) {
      array.yield %x : f32[64, 8]
    } : f32[data*64, 8]
    func.return
  }
}
// CHECK: f32[data*64, 8] uses axis `data`, which this build does not iterate over

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = array.build (data) {
      array.yield %x : f32[64, 8]
    } : f32[64, 8]{+model}
    func.return
  }
}
// CHECK: f32[64, 8]{+model} uses axis `model`, which this build does not iterate over

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = array.build (data) {
      array.yield %x : f32[64, 8]
    } : f32[data*32, 8]
    func.return
  }
}
// CHECK: `array.build` yields f32[64, 8] where one device holds f32[32, 8] of f32[data*32, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    %0 = array.build (data) {
      array.yield %x, %x : f32[64, 8], f32[64, 8]
    } : f32[data*64, 8]
    func.return
  }
}
// CHECK: `array.build` has 1 results and yields 2

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[64, 8]>) {
    array.build (data) {
      lax.yield %x : f32[64, 8]
    } : ()
    func.return
  }
}
// CHECK: the body of `array.build` ends in `array.yield`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.slice %x to f32[data*64, 8] : f32[256, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: `array.slice` uses axis `data`, which no build around it iterates over

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]{+model}>) {
    %0 = array.build (data) {
      %1 = array.slice %x to f32[data*64, 8] : f32[256, 8]{+model} -> f32[64, 8]
      array.yield %1 : f32[64, 8]
    } : f32[data*64, 8]
    func.return
  }
}
// CHECK: `array.slice` cannot resolve a pending reduction: f32[256, 8]{+model} to f32[data*64, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.build (data) {
      %1 = array.slice %x to f32[data*32, 8] : f32[256, 8] -> f32[32, 8]
      array.yield %1 : f32[32, 8]
    } : f32[data*32, 8]
    func.return
  }
}
// CHECK: `array.slice` changes layouts, not shapes: f32[256, 8] is [256, 8] as a whole, f32[data*32, 8] is [128, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[data*64, 8]>) {
    %0 = array.build (data, model) {
      %1 = array.slice %x to f32[256, model*4] : f32[data*64, 8] -> f32[256, 4]
      array.yield %1 : f32[256, 4]
    } : f32[256, model*4]
    func.return
  }
}
// CHECK: `array.slice` keeps every tile: dim 0 of f32[data*64, 8] is over `data`, but in f32[256, model*4] it is not

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.build (data) {
      %1 = array.slice %x to f32[data*64, 8] : f32[256, 8] -> f32[32, 8]
      array.yield %1 : f32[32, 8]
    } : f32[data*32, 8]
    func.return
  }
}
// CHECK: `array.slice` gives f32[64, 8], what one device holds of f32[data*64, 8], not f32[32, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.coordinate (data) : i32[]
    func.return
  }
}
// CHECK: `array.coordinate` uses axis `data`, which no build around it iterates over

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.build (data) {
      %1 = array.coordinate (data) : f32[]
      array.yield %1 : f32[]
    } : f32[]{+data}
    func.return
  }
}
// CHECK: `array.coordinate` gives an i32[]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @f(%x: !array.array<f32[256, 8]>) {
    %0 = array.barrier %x : f32[256, 8] -> f32[data*64, 8]
    func.return
  }
}
// CHECK: `array.barrier` returns its operands unchanged: their types must match

// -----
builtin.module attributes {array.mesh = "data=8"} {
  func.func @f(%x: !array.array<f32[data*8]>) {
    %0 = array.redistribute %x : f32[data*8] -> f32[win<8,10,1,1000>(data) of 64]
    func.return
  }
}
// CHECK: `array.redistribute`: no array is laid out as `f32[win<8,10,1,1000>(data) of 64]`: the windows of dim 0 have none of its 64 elements: they begin at -1000, ..., -944 and have 10 elements each; a window that begins `lo` elements before its block: `win<8,10,1,lo>`

// -----
builtin.module attributes {array.mesh = "data=8"} {
  func.func @f(%x: !array.array<f32[data*8]>) {
    %0 = array.redistribute %x : f32[data*8] -> f32[win<8,4,2,0>(data) of 64]
    func.return
  }
}
// CHECK: `[win<8,4,2,0>(data) of 64]` is not a tiling, nor windows; write `[win<8,7,1,0>(data) of 64]`

// -----
builtin.module attributes {array.mesh = "data=8"} {
  func.func @f(%x: !array.array<f32[data*8]>) {
    %0 = array.redistribute %x : f32[data*8] -> f32[win<8,10,1,1>(data*2) of 64]
    func.return
  }
}
// CHECK: `win<8,10,1,1>(data*2) of 64` is not a range of windows, one for each device; write axes as the base: `win<...>(data)`

// -----
builtin.module attributes {array.mesh = "data=8"} {
  func.func @f(%x: !array.array<f32[data*8]>) {
    %0 = array.redistribute %x : f32[data*8] -> f32[win<8,10,1,1>(8) of 64]
    func.return
  }
}
// CHECK: `win<8,10,1,1>(8) of 64` is not a range of windows, one for each device

// -----
builtin.module attributes {array.mesh = "data=8"} {
  func.func @f(%x: !array.array<f32[data*8]>) {
    %0 = array.redistribute %x : f32[data*8] -> f32[data*8 pad 66]
    func.return
  }
}
// CHECK: `data*8 pad 66` has room for 64 elements
// CHECK-NEXT: help: `pad` is followed by the number without padding

// -----
builtin.module attributes {array.mesh = "data=8"} {
  func.func @f(%x: !array.array<f32[data*8]>) {
    %0 = array.redistribute %x : f32[data*8] -> f32[data.0:3*22 pad 64]
    func.return
  }
}
// CHECK: `data.0:3` does not divide `data` (8 devices)
// CHECK-NEXT: help: sizes that do: 2, 4

// -----
builtin.module attributes {array.mesh = "data=8"} {
  func.func @f(%x: !array.array<f32[data*8]>) {
    %0 = array.redistribute %x : f32[data*8] -> f32[data.0:2*32]
    func.return
  }
}
// CHECK: `data.0:2` is not an axis of the mesh
// CHECK-NEXT: help: write the mesh with the sub-axes: `data.0=2, data.1=4`

