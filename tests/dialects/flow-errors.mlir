// RUN: partita-opt %s --split-input-file --verify-diagnostics | filecheck %s

builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @scale(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[256, 8]> {
    %0 = flow.kernel @scald(%x) : f32[data*64, 8] -> f32[data*64, 8]
    %1 = flow.redistribute %0 : f32[data*64, 8] -> f32[256, 8]
    flow.return %1 : f32[256, 8]
  }
}
// CHECK: `flow.kernel` calls `@scald`, but the module has no such function: there is `@scale`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @scale(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[data*64, 8]> {
    %0 = flow.kernel @scale(%x, %x) : f32[data*64, 8], f32[data*64, 8] -> f32[data*64, 8]
    flow.return %0 : f32[data*64, 8]
  }
}
// CHECK: `@scale` has 1 operands, `flow.kernel` 2

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @scale(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[data*32, 8]> {
    %0 = flow.kernel @scale(%x) : f32[data*64, 8] -> f32[data*32, 8]
    flow.return %0 : f32[data*32, 8]
  }
}
// CHECK: result 0 of `flow.kernel @scale` is f32[data*32, 8], f32[32, 8] on one device, and the function has f32[64, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @scale(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[256, 8]> {
    flow.return %x : f32[data*64, 8]
  }
}
// CHECK: `flow.return` returns other types than `flow.graph` declares

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @scale(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[128, 8]> {
    %1 = flow.redistribute %x : f32[data*64, 8] -> f32[128, 8]
    flow.return %1 : f32[128, 8]
  }
}
// CHECK: `flow.redistribute` changes layouts, not shapes: f32[data*64, 8] is [256, 8] as a whole, f32[128, 8] is [128, 8]

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @scale(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[data*64, 8]> {
    lax.yield %x : f32[data*64, 8]
  }
}
// CHECK: the body of `flow.graph` ends in `flow.return`

// -----
builtin.module attributes {array.mesh = "data=4, model=2"} {
  func.func @scale(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> {
    func.return %x : !array.array<f32[64, 8]>
  }
  func.func @main(%x: !array.array<f32[64, 8]>) {
    %0 = flow.kernel @scale(%x) : f32[64, 8] -> f32[64, 8]
    func.return
  }
}
// CHECK: 'flow.kernel' expects parent op 'flow.graph'

// -----
builtin.module attributes {array.mesh = "data=8"} {
  flow.graph @step(%x: !array.array<f32[8*data]>) -> !array.array<f32[64]> {
    %0 = flow.redistribute %x : f32[8*data] -> f32[64]
    flow.return %0 : f32[64]
  }
}
// CHECK: argument 0 of `flow.graph` is f32[8*data], but an array outside of the program has blocks of consecutive elements, all of one size; write f32[data*8], and `flow.redistribute` inside

// -----
builtin.module attributes {array.mesh = "data=8"} {
  flow.graph @step(%x: !array.array<f32[64]>) -> !array.array<f32[8*data]> {
    %0 = flow.redistribute %x : f32[64] -> f32[8*data]
    flow.return %0 : f32[8*data]
  }
}
// CHECK: result 0 of `flow.graph` is f32[8*data], but an array outside of the program has blocks of consecutive elements, all of one size; write f32[data*8], and `flow.redistribute` inside

// -----
builtin.module attributes {array.mesh = "data=8"} {
  flow.graph @step(%x: !array.array<f32[64]>) -> !array.array<f32[win<8,10,1,1>(data) of 64]> {
    %0 = flow.redistribute %x : f32[64] -> f32[win<8,10,1,1>(data) of 64]
    flow.return %0 : f32[win<8,10,1,1>(data) of 64]
  }
}
// CHECK: result 0 of `flow.graph` is f32[win<8,10,1,1>(data) of 64], but an array outside of the program has blocks of consecutive elements, all of one size; write f32[data*8], and `flow.redistribute` inside

// -----
builtin.module attributes {array.mesh = "data=8"} {
  flow.graph @step(%x: !array.array<f32[62]>) -> !array.array<f32[data*8 pad 62]> {
    %0 = flow.redistribute %x : f32[62] -> f32[data*8 pad 62]
    flow.return %0 : f32[data*8 pad 62]
  }
}
// CHECK: result 0 of `flow.graph` is f32[data*8 pad 62], but an array outside of the program has blocks of consecutive elements, all of one size; write f32[62], and `flow.redistribute` inside

// -----
builtin.module {
  flow.graph @f(%x: !array.array<f32[data*32, 8] on left>) {
    %0 = flow.transfer %x : f32[data*32, 8] on left -> f32[data*64, 8] on right
    flow.return : ()
  }
  func.func @first(%x: !array.array<f32[32, 8]>) -> !array.array<f32[32, 8]> attributes {array.mesh = "data@left=4"} {
    func.return %x : !array.array<f32[32, 8]>
  }
  func.func @second(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> attributes {array.mesh = "data@right=2"} {
    func.return %x : !array.array<f32[64, 8]>
  }
}
// CHECK: no block of f32[data*32, 8] on left has all of a block of f32[data*64, 8] on right: write `flow.redistribute` first

// -----
builtin.module {
  flow.graph @f(%x: !array.array<f32[data*32, 8] on left>) {
    %0 = flow.transfer %x : f32[data*32, 8] on left -> f32[128, 8] on left
    flow.return : ()
  }
  func.func @first(%x: !array.array<f32[32, 8]>) -> !array.array<f32[32, 8]> attributes {array.mesh = "data@left=4"} {
    func.return %x : !array.array<f32[32, 8]>
  }
  func.func @second(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> attributes {array.mesh = "data@right=2"} {
    func.return %x : !array.array<f32[64, 8]>
  }
}
// CHECK: `flow.transfer` moves to another device set, but both are on `left`

// -----
builtin.module {
  flow.graph @f(%x: !array.array<f32[data*32, 8] on left>) {
    %0 = flow.transfer %x : f32[data*32, 8] on left -> f32[4*data*16, 8] on right
    flow.return : ()
  }
  func.func @first(%x: !array.array<f32[32, 8]>) -> !array.array<f32[32, 8]> attributes {array.mesh = "data@left=4"} {
    func.return %x : !array.array<f32[32, 8]>
  }
  func.func @second(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> attributes {array.mesh = "data@right=2"} {
    func.return %x : !array.array<f32[64, 8]>
  }
}
// CHECK: `flow.transfer` moves blocks of consecutive elements, not f32[4*data*16, 8] on right

// -----
builtin.module {
  flow.graph @f(%x: !array.array<f32[data*32, 8] on left>) {
    %0 = flow.redistribute %x : f32[data*32, 8] on left -> f32[data*64, 8] on right
    flow.return : ()
  }
  func.func @first(%x: !array.array<f32[32, 8]>) -> !array.array<f32[32, 8]> attributes {array.mesh = "data@left=4"} {
    func.return %x : !array.array<f32[32, 8]>
  }
  func.func @second(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> attributes {array.mesh = "data@right=2"} {
    func.return %x : !array.array<f32[64, 8]>
  }
}
// CHECK: `flow.redistribute` stays on its device set, and `flow.transfer` moves: f32[data*32, 8] on left to f32[data*64, 8] on right

// -----
builtin.module {
  flow.graph @f(%x: !array.array<f32[data*32, 8] on left>) {
    %0 = flow.kernel @first(%x) : f32[data*32, 8] on left -> f32[32, 8] on right
    flow.return : ()
  }
  func.func @first(%x: !array.array<f32[32, 8]>) -> !array.array<f32[32, 8]> attributes {array.mesh = "data@left=4"} {
    func.return %x : !array.array<f32[32, 8]>
  }
  func.func @second(%x: !array.array<f32[64, 8]>) -> !array.array<f32[64, 8]> attributes {array.mesh = "data@right=2"} {
    func.return %x : !array.array<f32[64, 8]>
  }
}
// CHECK: `flow.kernel @first` runs on one device set, but has values on `left` and `right`
