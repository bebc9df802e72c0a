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
