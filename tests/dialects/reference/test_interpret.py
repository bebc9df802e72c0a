"""The interpreter: whole programs, placed ones, kernels and graphs, on small arrays that can be checked by eye."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from partita.dialects import context
from partita.dialects.ground.errors import Error
from partita.dialects.layouts import Layout, parse_array
from partita.dialects.mesh import Mesh
from partita.dialects.program_text import read_module
from partita.dialects.reference.interpret import entry_of, interpret, run_devices
from partita.dialects.reference.lockstep import DeviceArrays, collect, distribute, redistribute
from partita.dialects.reference.scalar_functions import cast_to

A = np.arange(32, dtype=np.float32).reshape(8, 4)
B = np.arange(8, dtype=np.float32).reshape(4, 2)


def module(text: str, mesh: str = "data=2, model=2") -> ModuleOp:
    parsed = read_module(context(), f'builtin.module attributes {{array.mesh = "{mesh}"}} {{ {text} }}')
    parsed.verify()
    return parsed


def layout(text: str, mesh: Mesh) -> Layout:
    return parse_array(text, mesh)[1]


def test_a_program_runs_on_whole_arrays() -> None:
    program = module("""
      func.func @main(%a: !array.array<f32[8, 4]>, %b: !array.array<f32[4, 2]>) -> !array.array<f32[8, 2]> {
        %0 = lax.dot_general %a, %b {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[8, 4], f32[4, 2] -> f32[8, 2]
        %1 = lax.constant {value = 2.0} : f32[]
        %2 = lax.mul %0, %1 : f32[8, 2], f32[] -> f32[8, 2]
        func.return %2 : !array.array<f32[8, 2]>
      }""")
    (result,) = interpret(program, [A, B])
    np.testing.assert_array_equal(result, 2 * A @ B)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_runs_one_trip_after_another(reverse: bool) -> None:
    program = module(f"""
      func.func @main(%c: !array.array<f32[]>, %xs: !array.array<f32[4]>) -> (!array.array<f32[]>, !array.array<f32[4]>) {{
        %0, %1 = lax.scan %c, %xs {{length = 4, num_carry = 1, num_consts = 0, reverse = {reverse}, unroll = 1}} {{
        ^bb0(%s: !array.array<f32[]>, %x: !array.array<f32[]>):
          %2 = lax.mul %s, %c : f32[], f32[] -> f32[]
          %3 = lax.add %2, %x : f32[], f32[] -> f32[]
          lax.yield %3, %2 : f32[], f32[]
        }} : f32[], f32[4] -> f32[], f32[4]
        func.return %0, %1 : !array.array<f32[]>, !array.array<f32[4]>
      }}""")
    last, stacked = interpret(program, [np.asarray(2, np.float32), np.asarray([1, 2, 3, 4], np.float32)])
    assert last == (81 if reverse else 58)
    np.testing.assert_array_equal(stacked, [80, 38, 16, 4] if reverse else [4, 10, 24, 54])


CHAIN = """
  func.func @main(%a: !array.array<f32[data*4, model*2]>, %b: !array.array<f32[4, 2]>) -> !array.array<f32[data*4, 2]> {
    %0 = array.build (data, model) {
      %1 = array.slice %a to f32[data*4, model*2] : f32[data*4, model*2] -> f32[4, 2]
      %2 = array.slice %b to f32[model*2, 2] : f32[4, 2] -> f32[2, 2]
      %3 = lax.dot_general %1, %2 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[4, 2], f32[2, 2] -> f32[4, 2]
      array.yield %3 : f32[4, 2]
    } : f32[data*4, 2]{+model}
    %4 = array.redistribute %0 : f32[data*4, 2]{+model} -> f32[data*4, 2]
    func.return %4 : !array.array<f32[data*4, 2]>
  }"""


def test_a_build_runs_its_body_for_every_device_and_a_redistribution_resolves_what_is_pending() -> None:
    (result,) = interpret(module(CHAIN), [A, B])
    np.testing.assert_array_equal(result, A @ B)


def test_a_coordinate_says_which_device_it_is() -> None:
    program = module("""
      func.func @main() -> !array.array<i32[data*1, model*1]> {
        %0 = array.build (data, model) {
          %1 = array.coordinate (model, data) : i32[]
          %2 = lax.broadcast_in_dim %1 {broadcast_dimensions = ()} : i32[] -> i32[1, 1]
          array.yield %2 : i32[1, 1]
        } : i32[data*1, model*1]
        func.return %0 : !array.array<i32[data*1, model*1]>
      }""")
    (result,) = interpret(program, [])
    np.testing.assert_array_equal(result, [[0, 2], [1, 3]])


GRAPH = """
  flow.graph @main(%a: !array.array<f32[data*4, model*2]>, %b: !array.array<f32[model*2, 2]>) -> !array.array<f32[data*4, 2]> {
    %0 = flow.kernel @dot(%a, %b) : f32[data*4, model*2], f32[model*2, 2] -> f32[data*4, 2]
    flow.return %0 : f32[data*4, 2]
  }
  func.func @dot(%a: !array.array<f32[4, 2]>, %b: !array.array<f32[2, 2]>) -> !array.array<f32[4, 2]> {
    %0 = lax.dot_general %a, %b {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[4, 2], f32[2, 2] -> f32[4, 2]
    %1 = spmd.all_reduce add %0 over (model) : f32[4, 2] -> f32[4, 2]
    func.return %1 : !array.array<f32[4, 2]>
  }"""


def test_a_graph_runs_its_kernels_on_all_devices_in_lockstep() -> None:
    (result,) = interpret(module(GRAPH), [A, B])
    np.testing.assert_array_equal(result, A @ B)


def test_a_kernel_alone_takes_local_arrays() -> None:
    kernel = next(op for op in module(GRAPH).body.block.ops if isinstance(op, FuncOp))
    mesh = Mesh(data=2, model=2)
    held = [
        distribute(A, layout("f32[data*4, model*2]", mesh), mesh.size),
        distribute(B, layout("f32[model*2, 2]", mesh), mesh.size),
    ]
    (out,) = run_devices(kernel, held, mesh.size)
    np.testing.assert_array_equal(collect(out, layout("f32[data*4, 2]", mesh), mesh.size), A @ B)
    with pytest.raises(Error, match=r"argument 0 is f32\[4, 2\], and float32\[8, 4\] was given"):
        interpret(kernel, [A, B])


# What device d of 4 holds is [10 d, 10 d + 1]; each collective over all four, from shape 2 to the shape of the results.
COLLECTIVES: dict[str, list[list[float]]] = {
    "spmd.all_reduce add %x over (a, b) : f32[2] -> f32[2]": [[60, 64]] * 4,
    "spmd.all_reduce max %x over (b) : f32[2] -> f32[2]": [[10, 11], [10, 11], [30, 31], [30, 31]],
    "spmd.all_gather %x dim 0 block 2 over (a) : f32[2] -> f32[4]": [[0, 1, 20, 21], [10, 11, 30, 31]] * 2,
    "spmd.all_gather %x dim 0 block 1 over (a) : f32[2] -> f32[4]": [[0, 20, 1, 21], [10, 30, 11, 31]] * 2,
    "spmd.all_gather %x dim 0 block 2 over (b, a) : f32[2] -> f32[8]": [[0, 1, 20, 21, 10, 11, 30, 31]] * 4,
    "spmd.reduce_scatter add %x dim 0 block 1 over (b) : f32[2] -> f32[1]": [[10], [12], [50], [52]],
    "spmd.slice %x dim 0 block 1 over (a) : f32[2] -> f32[1]": [[0], [10], [21], [31]],
    "spmd.all_to_all %x split 0 block 1 concat 0 block 1 over (b) : f32[2] -> f32[2]": [[0, 10], [1, 11], [20, 30], [21, 31]],
    "spmd.permute %x over (a) pairs [(0, 1)] : f32[2] -> f32[2]": [[0, 0], [0, 0], [0, 1], [10, 11]],
}


@pytest.mark.parametrize("text", COLLECTIVES)
def test_collectives(text: str) -> None:
    mesh = Mesh(a=2, b=2)
    size = text[text.rindex("f32[") :]
    body = f"%0 = {text} func.return %0 : !array.array<{size}>"
    program = module(f"func.func @main(%x: !array.array<f32[2]>) -> !array.array<{size}> {{ {body} }}", str(mesh))
    kernel = entry_of(program)
    assert isinstance(kernel, FuncOp)
    (out,) = run_devices(kernel, [[np.asarray([10 * d, 10 * d + 1], np.float32) for d in range(4)]], mesh.size)
    np.testing.assert_array_equal(np.stack(out), COLLECTIVES[text])


LAYOUTS = ["f32[8, 4]", "f32[a*4, 4]", "f32[4*a, b*2]", "f32[a*b*2, 4]", "f32[b*a*2, 4]", "f32[2*b*2, a*2]"]


@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("source", [*LAYOUTS, "f32[8, 4]{+a}", "f32[a*4, 4]{+b}", "f32[8, 4]{+a, +b}", "f32[a*4, 4]{max b}"])
def test_a_redistribution_keeps_the_value(source: str, target: str) -> None:
    mesh = Mesh(a=2, b=2)
    value = distribute(A, layout(source, mesh), mesh.size)
    np.testing.assert_array_equal(
        collect(redistribute(value, layout(source, mesh), layout(target, mesh), mesh.size), layout(target, mesh), mesh.size), A
    )


def test_a_reduction_that_stays_pending_is_not_done() -> None:
    mesh = Mesh(a=2, b=2)
    source, target = layout("f32[8, 4]{+a, +b}", mesh), layout("f32[b*4, 4]{+a}", mesh)
    value: DeviceArrays = [A * device for device in range(4)]
    moved = redistribute(value, source, target, mesh.size)
    # Devices 0 and 1 add up to A, 2 and 3 to 5 A; each keeps its half.
    for held, wanted in zip(moved, [A[:4], A[4:], 5 * A[:4], 5 * A[4:]], strict=True):
        np.testing.assert_array_equal(held, wanted)


def test_sub_axes_are_digits_of_the_coordinate() -> None:
    mesh = Mesh(a=4).refine(a=(2, 2))
    value = distribute(A, layout("f32[a.0:2*4, a.1:2*2]", mesh), mesh.size)
    np.testing.assert_array_equal(value[1], A[:4, 2:])
    np.testing.assert_array_equal(collect(value, layout("f32[a.0:2*4, a.1:2*2]", mesh), mesh.size), A)


def test_conversions_truncate_and_saturate() -> None:
    floats = np.asarray([1.9, -1.9, 1e20, -1e20, np.nan, np.inf], np.float32)
    wanted = [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1]
    np.testing.assert_array_equal(cast_to(floats, np.dtype(np.int32)), wanted)
    assert cast_to(floats[:1], np.dtype(ml_dtypes.bfloat16))[0] == ml_dtypes.bfloat16(1.9)


def test_a_primitive_without_a_definition_cannot_be_interpreted() -> None:
    program = module("""
      func.func @main(%x: !array.array<f32[4]>) -> !array.array<f32[4]> {
        %0 = lax.whole %x {primitive = "fft"} : f32[4] -> f32[4]
        func.return %0 : !array.array<f32[4]>
      }""")
    with pytest.raises(Error, match="`fft` has no definition, so the interpreter cannot run it"):
        interpret(program, [A[0]])
