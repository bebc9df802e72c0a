// RUN: partita-opt %s | filecheck %s
// RUN: partita-opt %s | partita-opt --print-op-generic | partita-opt | filecheck %s

func.func @loop(%w: !array.array<f32[8, 8]>, %x: !array.array<f32[4, 8]>, %xs: !array.array<f32[5, 4, 8]>) -> !array.array<f32[4, 8]> {
  %last, %all = lax.scan %w, %x, %xs {length = 5, num_carry = 1, num_consts = 1, reverse = False, unroll = 1} {
  ^bb0(%m: !array.array<f32[8, 8]>, %h: !array.array<f32[4, 8]>, %each: !array.array<f32[4, 8]>):
    %0 = lax.dot_general %h, %m {dimension_numbers = (((1,), (0,)), ((), ())), precision = None} : f32[4, 8], f32[8, 8] -> f32[4, 8]
    %1 = lax.add %0, %each : f32[4, 8], f32[4, 8] -> f32[4, 8]
    lax.yield %1, %0 : f32[4, 8], f32[4, 8]
  } : f32[8, 8], f32[4, 8], f32[5, 4, 8] -> f32[4, 8], f32[5, 4, 8]
  %2 = lax.constant {value = -0.0} attributes {provenance = "mlp.py:12"} : bf16[]
  lax.whole %last {primitive = "debug_callback"} : f32[4, 8]
  func.return %last : !array.array<f32[4, 8]>
}

// CHECK:      func.func @loop(%w: !array.array<f32[8, 8]>, %x: !array.array<f32[4, 8]>, %xs: !array.array<f32[5, 4, 8]>) -> !array.array<f32[4, 8]> {
// CHECK-NEXT:   %last, %all = lax.scan %w, %x, %xs {length = 5, num_carry = 1, num_consts = 1, reverse = False, unroll = 1} {
// CHECK-NEXT:   ^bb0(%m: !array.array<f32[8, 8]>, %h: !array.array<f32[4, 8]>, %each: !array.array<f32[4, 8]>):
// CHECK-NEXT:     %0 = lax.dot_general %h, %m {dimension_numbers = (((1,), (0,)), ((), ())), precision = None} : f32[4, 8], f32[8, 8] -> f32[4, 8]
// CHECK-NEXT:     %1 = lax.add %0, %each : f32[4, 8], f32[4, 8] -> f32[4, 8]
// CHECK-NEXT:     lax.yield %1, %0 : f32[4, 8], f32[4, 8]
// CHECK-NEXT:   } : f32[8, 8], f32[4, 8], f32[5, 4, 8] -> f32[4, 8], f32[5, 4, 8]
// CHECK-NEXT:   %2 = lax.constant {value = -0.0} attributes {provenance = "mlp.py:12"} : bf16[]
// CHECK-NEXT:   lax.whole %last {primitive = "debug_callback"} : f32[4, 8]
// CHECK-NEXT:   func.return %last : !array.array<f32[4, 8]>

builtin.module attributes {array.mesh = "data=4"} {
  func.func @regions(%n: !array.array<i32[]>, %x: !array.array<f32[data*2, 8]>, %m: !array.array<i32[]>) -> !array.array<f32[data*2, 8]> {
    %count, %y = lax.while %m, %n, %x {body_nconsts = 0, cond_nconsts = 1} {
    ^bb0(%most: !array.array<i32[]>, %i: !array.array<i32[]>, %0: !array.array<f32[data*2, 8]>):
      %more = lax.lt %i, %most : i32[], i32[] -> bool[]
      lax.yield %more : bool[]
    } {
    ^bb1(%j: !array.array<i32[]>, %1: !array.array<f32[data*2, 8]>):
      %2 = lax.add %j, %j : i32[], i32[] -> i32[]
      lax.yield %2, %1 : i32[], f32[data*2, 8]
    } : i32[], i32[], f32[data*2, 8] -> i32[], f32[data*2, 8]
    %z = lax.cond %count, %y, %x {} {
    ^bb2(%a: !array.array<f32[data*2, 8]>, %b: !array.array<f32[data*2, 8]>):
      lax.yield %a : f32[data*2, 8]
    } {
    ^bb3(%c: !array.array<f32[data*2, 8]>, %d: !array.array<f32[data*2, 8]>):
      lax.yield %d : f32[data*2, 8]
    } : i32[], f32[data*2, 8], f32[data*2, 8] -> f32[data*2, 8]
    func.return %z : !array.array<f32[data*2, 8]>
  }
}

// CHECK:      %count, %y = lax.while %m, %n, %x {body_nconsts = 0, cond_nconsts = 1} {
// CHECK-NEXT: ^{{.*}}(%most: !array.array<i32[]>, %i: !array.array<i32[]>, %{{.*}}: !array.array<f32[data*2, 8]>):
// CHECK-NEXT:   %more = lax.lt %i, %most : i32[], i32[] -> bool[]
// CHECK-NEXT:   lax.yield %more : bool[]
// CHECK-NEXT: } {
// CHECK:      } : i32[], i32[], f32[data*2, 8] -> i32[], f32[data*2, 8]
// CHECK-NEXT: %z = lax.cond %count, %y, %x {} {
// CHECK:      } : i32[], f32[data*2, 8], f32[data*2, 8] -> f32[data*2, 8]
