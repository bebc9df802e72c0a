"""Definitions compute what JAX computes: primitives on small arrays of several shapes, dtypes and dimension numbers."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.random import threefry2x32_p

from partita.compiler.ops.params import Foreign, decode, encode, op_name
from partita.dialects.definitions.registry import definitions
from partita.dialects.reference.evaluate import evaluate

Array = Any
GENERATOR = np.random.default_rng(0)


def f32(*shape: int) -> Array:
    return jnp.asarray(GENERATOR.normal(size=shape).astype(np.float32))


def bf16(*shape: int) -> Array:
    return f32(*shape).astype(jnp.bfloat16)


def i32(*shape: int, low: int = -7, high: int = 8) -> Array:
    return jnp.asarray(GENERATOR.integers(low, high, size=shape).astype(np.int32))


def u32(*shape: int) -> Array:
    return jnp.asarray(GENERATOR.integers(0, 2**32, size=shape, dtype=np.uint32))


def boolean(*shape: int) -> Array:
    return i32(*shape) > 0


def c64(*shape: int) -> Array:
    return lax.complex(f32(*shape), f32(*shape))


def unit(*shape: int) -> Array:
    """Numbers between 0.1 and 0.9, where every function is defined."""
    return jnp.asarray(GENERATOR.uniform(0.1, 0.9, size=shape).astype(np.float32))


def check(function: Callable[..., Any], *args: Array, close: float = 2e-5) -> None:
    """Runs every equation of the function both ways, on the same inputs."""
    jaxpr = jax.make_jaxpr(function)(*args)
    values: dict[Any, Array] = dict(zip([*jaxpr.jaxpr.invars, *jaxpr.jaxpr.constvars], [*args, *jaxpr.consts], strict=True))
    assert jaxpr.eqns
    for eqn in jaxpr.eqns:
        inputs = [values[var] if not hasattr(var, "val") else jnp.asarray(var.val, var.aval.dtype) for var in eqn.invars]
        results = eqn.primitive.bind(*inputs, **eqn.params)
        results = results if eqn.primitive.multiple_results else [results]
        values |= zip(eqn.outvars, results, strict=True)
        compare(eqn, inputs, results, close)


def compare(eqn: Any, inputs: Sequence[Array], results: Sequence[Array], close: float) -> None:
    name = op_name(eqn.primitive.name)
    params = encode(eqn.params, Foreign(), definitions[name])
    types = tuple((var.aval.dtype.name, var.aval.shape) for var in eqn.outvars)
    restored = decode(name, params, tuple(each.shape for each in inputs), types)
    assert restored.keys() | {"update_jaxpr", "update_consts"} >= eqn.params.keys() >= restored.keys(), name
    found = evaluate(name, params, [np.asarray(each) for each in inputs], types)
    for ours, theirs in zip(found, results, strict=True):
        theirs = np.asarray(theirs)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), name
        bound = 2e-2 if theirs.dtype == jnp.bfloat16 else close
        wide = np.complex64 if theirs.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=bound, atol=bound, err_msg=name)


UNARY = """
neg abs ceil cos cosh exp exp2 expm1 floor is_finite log1p logistic round sign sin sinh square tan tanh erf erfc cbrt asinh atan
"""
BOUNDED = "acos asin atanh erf_inv log rsqrt sqrt lgamma digamma bessel_i0e bessel_i1e"
BINARY = "add sub mul div max min eq ne lt le gt ge atan2 nextafter"
INTEGER = "add sub mul div rem max min eq lt bitwise_and bitwise_or bitwise_xor"
SHIFTS = "shift_left shift_right_arithmetic shift_right_logical"


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_any_number(name: str) -> None:
    check(getattr(lax, name), f32(3, 4))


@pytest.mark.parametrize("name", BOUNDED.split())
def test_functions_of_numbers_within_0_and_1(name: str) -> None:
    check(getattr(lax, name), unit(3, 4))


@pytest.mark.parametrize("name", BINARY.split())
def test_functions_of_two_numbers(name: str) -> None:
    check(getattr(lax, name), f32(3, 4), f32(3, 4))


@pytest.mark.parametrize("name", INTEGER.split())
def test_functions_of_two_integers(name: str) -> None:
    check(getattr(lax, name), i32(4, 8), i32(4, 8))
    check(getattr(lax, name), u32(4, 8), u32(4, 8))


@pytest.mark.parametrize("name", SHIFTS.split())
def test_shifts_by_too_much_leave_nothing_or_the_sign(name: str) -> None:
    check(getattr(lax, name), i32(4, 8), i32(4, 8, low=0, high=40))


CASES: dict[str, tuple[Callable[..., Any], Sequence[Array]]] = {
    "acosh": (lax.acosh, [1 + unit(5)]),
    "bfloat16 add": (lax.add, [bf16(4, 3), bf16(4, 3)]),
    "bfloat16 tanh": (lax.tanh, [bf16(4, 3)]),
    "scalar and array": (lambda x: lax.mul(x, 2.0) + lax.exp(3.0) * x, [f32(3, 2)]),
    "rem": (lax.rem, [f32(20), f32(20)]),
    "pow": (lax.pow, [unit(4), f32(4)]),
    "pow to an integer": (lax.pow, [unit(4), i32(4)]),
    "integer_pow": (lambda x: lax.integer_pow(x, 3) + lax.integer_pow(x, -2), [unit(4)]),
    "integer_pow of integers": (lambda x: lax.integer_pow(x, 3), [i32(4)]),
    "round to even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), [jnp.arange(-3, 3, 0.5)]),
    "round away from zero": (lax.round, [jnp.arange(-3, 3, 0.5)]),
    "not": (lambda x, y: (lax.bitwise_not(x), lax.bitwise_not(y)), [i32(4), boolean(4)]),
    "clz and population_count": (lambda x: (lax.clz(x), lax.population_count(x)), [i32(9)]),
    "igamma": (lambda a, x: (lax.igamma(a, x), lax.igammac(a, x)), [unit(4), unit(4)]),
    "zeta and polygamma": (lambda a, x: (lax.zeta(a, x), lax.polygamma(jnp.ones(4), x)), [1 + unit(4), unit(4)]),
    "regularized_incomplete_beta": (lax.betainc, [unit(4), unit(4), unit(4)]),
    "complex": (lambda x, y: lax.conj(lax.complex(x, y)), [f32(3), f32(3)]),
    "real and imag": (lambda x: (lax.real(x), lax.imag(x), lax.abs(x), lax.sign(x)), [c64(3)]),
    "clamp": (lax.clamp, [jnp.float32(-0.5), f32(3, 4), jnp.float32(0.5)]),
    "clamp by arrays": (lax.clamp, [f32(3) - 2, f32(3), f32(3) + 2]),
    "select_n": (lax.select_n, [boolean(3, 4), f32(3, 4), f32(3, 4)]),
    "select_n of three": (lax.select_n, [i32(9, low=0, high=3), f32(9), f32(9), f32(9)]),
    "select_n by a scalar": (lax.select_n, [jnp.bool_(True), f32(3), f32(3)]),
    "convert to bfloat16": (lambda x: lax.convert_element_type(x, jnp.bfloat16), [f32(4)]),
    "convert to integers": (lambda x: lax.convert_element_type(x, jnp.int32), [1e10 * f32(9)]),
    "convert to unsigned": (lambda x: lax.convert_element_type(x, jnp.uint32), [100 * f32(9)]),
    "convert to bool": (lambda x: lax.convert_element_type(x, jnp.bool_), [i32(9)]),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), [f32(9)]),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32), [f32(3, 4)]),
    "bitcast to narrower": (lambda x: lax.bitcast_convert_type(x, jnp.int8), [f32(3, 4)]),
    "bitcast to wider": (lambda x: lax.bitcast_convert_type(x, jnp.float32), [i32(3, 4).astype(jnp.int8)]),
    "optimization_barrier": (lambda x, y: lax.optimization_barrier((x, y)), [f32(3), f32(2, 2)]),
    "stop_gradient and copy": (lambda x: jnp.copy(lax.stop_gradient(x)), [f32(3)]),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), [f32(3, 4), f32(4, 5)]),
    "dot_general with batches": (
        lambda x, y: lax.dot_general(x, y, (((3, 0), (1, 3)), ((1,), (2,)))),
        [f32(2, 3, 4, 5), f32(6, 5, 3, 2)],
    ),
    "dot_general of vectors": (lambda x, y: lax.dot(x, y), [f32(4), f32(4)]),
    "dot_general in float32": (
        lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32),
        [bf16(3, 64), bf16(64, 5)],
    ),
    "dot_general of integers": (lax.dot, [i32(3, 4), i32(4, 5)]),
    "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), [f32(2, 3, 4)]),
    "reshape": (lambda x: lax.reshape(x, (3, 8)), [f32(2, 3, 4)]),
    "reshape to more": (lambda x: lax.reshape(x, (2, 1, 12, 1)), [f32(2, 3, 4)]),
    "squeeze and expand_dims": (lambda x: lax.expand_dims(lax.squeeze(x, (0, 2)), (1,)), [f32(1, 3, 1)]),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), [f32(3, 4)]),
    "broadcast_in_dim of extent 1": (lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 1)), [f32(3, 1)]),
    "broadcast_in_dim of a scalar": (lambda: lax.broadcast_in_dim(jnp.float32(2), (3, 2), ()), []),
    "iota": (lambda: lax.broadcasted_iota(jnp.int32, (3, 4), 1), []),
    "iota of floats": (lambda: lax.broadcasted_iota(jnp.bfloat16, (5, 1), 0), []),
    "concatenate": (lambda x, y, z: lax.concatenate([x, y, z], 1), [f32(2, 3), f32(2, 1), f32(2, 2)]),
    "rev": (lambda x: lax.rev(x, (0, 2)), [f32(2, 3, 4)]),
    "slice": (lambda x: lax.slice(x, (0, 1), (2, 4)), [f32(2, 5)]),
    "slice with strides": (lambda x: lax.slice(x, (0, 1), (5, 8), (2, 3)), [f32(5, 9)]),
    "pad": (lambda x, y: lax.pad(x, y, ((1, 2, 0), (0, 0, 2))), [f32(2, 3), jnp.float32(7)]),
    "pad by less than nothing": (lambda x, y: lax.pad(x, y, ((-1, 2, 0), (1, -2, 1))), [f32(4, 5), jnp.float32(7)]),
    "reduce_sum": (lambda x: lax.reduce_sum_p.bind(x, axes=(0, 2), out_sharding=None), [f32(3, 4, 5)]),
    "reduce_sum of bfloat16": (lambda x: lax.reduce_sum_p.bind(x, axes=(1,), out_sharding=None), [bf16(3, 40)]),
    "reduce_max and reduce_min": (lambda x: (jnp.max(x, 1), jnp.min(x, 0)), [f32(3, 4)]),
    "argmax": (lambda x: (lax.argmax(x, 1, jnp.int32), lax.argmin(x, 0, jnp.int32)), [f32(3, 4, 2)]),
    "cumsum": (lambda x: (lax.cumsum(x, 1), lax.cumsum(x, 0, reverse=True)), [f32(3, 4)]),
    "cumprod": (lambda x: lax.cumprod(x, 0), [f32(3, 4)]),
    "cummax": (lambda x: (lax.cummax(x, 1), lax.cummin(x, 1)), [f32(3, 4)]),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), [f32(3, 4)]),
    "sort": (lambda x: lax.sort(x, dimension=0), [f32(5, 2)]),
    "sort by two keys": (
        lambda x, y, z: lax.sort((x, y, z), dimension=1, num_keys=2),
        [i32(3, 9, low=0, high=3), i32(3, 9), f32(3, 9)],
    ),
    "top_k": (lambda x: lax.top_k(x, 3), [f32(2, 7)]),
    "top_k of equals": (lambda x: lax.top_k(x, 4), [i32(2, 9, low=0, high=3)]),
    "threefry2x32": (
        lambda a, b, x, y: threefry2x32_p.bind(a, b, x, y),
        [jnp.uint32(1), jnp.uint32(2), u32(9), u32(9)],
    ),
    "reduce_window_sum": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 2), (1, 2, 1), ((0, 0), (1, 1), (0, 1)), None, (1, 1, 2)),
        [f32(2, 7, 5)],
    ),
    "reduce_window_max": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "SAME"), [f32(2, 7)]),
    "reduce_window_min": (lambda x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2), (1, 2), "VALID"), [f32(2, 7)]),
    "conv": (lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"), [f32(2, 3, 8), f32(4, 3, 3)]),
    "conv of images": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (2, 1), ((1, 0), (2, 2)), (1, 2), (2, 1), ("NHWC", "HWIO", "NHWC"), feature_group_count=2
        ),
        [f32(2, 7, 6, 4), f32(3, 2, 2, 6)],
    ),
    "conv with batch groups": (
        lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID", batch_group_count=2),
        [f32(4, 3, 8), f32(6, 3, 2)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_definition_says_what_jax_computes(case: str) -> None:
    function, args = CASES[case]
    check(function, *args)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "and", "or", "xor"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
def test_reductions_of_integers(name: str, axes: tuple[int, ...]) -> None:
    primitive = getattr(lax, f"reduce_{name}_p")
    sharding = {"out_sharding": None} if name == "sum" else {}
    check(lambda x: primitive.bind(x, axes=axes, **sharding), i32(3, 4))


@pytest.mark.parametrize("name", ["and", "or", "xor", "max", "min"])
def test_reductions_of_booleans(name: str) -> None:
    primitive = getattr(lax, f"reduce_{name}_p")
    check(lambda x: primitive.bind(x, axes=(1,)), boolean(5, 2))


MODES = ["clip", "fill", "promise_in_bounds"]


def ids(mode: str, *shape: int, extent: int) -> Array:
    """Index vectors, also out of range if the mode defines the result."""
    far = 0 if mode == "promise_in_bounds" else 2
    return i32(*shape, low=-far, high=extent + far)


def numbers(kind: Any, *fields: tuple[int, ...]) -> Any:
    return kind(*fields)


GATHERS: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], int]] = {
    # dimension numbers; slice sizes; shape of the array; shape of the index vectors; the smallest looked-up extent
    "rows": (((1,), (0,), (0,), (), ()), (1, 4), (6, 4), (5, 1), 6),
    "rows of a batch": (((2,), (0,), (0,), (), ()), (1, 4), (6, 4), (3, 2, 1), 6),
    "columns": (((0,), (1,), (1,), (), ()), (6, 1), (6, 4), (5, 1), 4),
    "elements": (((), (0, 1), (0, 1), (), ()), (1, 1), (6, 4), (5, 2), 4),
    "elements, swapped": (((), (0, 1), (1, 0), (), ()), (1, 1), (4, 4), (5, 2), 4),
    "windows": (((1, 2), (), (0, 1), (), ()), (2, 3), (6, 5), (5, 2), 3),
    "windows of one row": (((1, 2), (), (0,), (), ()), (1, 3), (6, 3), (5, 1), 6),
    "along an axis": (((), (2,), (2,), (0, 1), (0, 1)), (1, 1, 1), (2, 3, 5), (2, 3, 4, 1), 5),
    "batches apart": (((1,), (2,), (2,), (1,), (0,)), (4, 1, 1), (4, 3, 5), (3, 2, 1), 5),
    "a window over all": (((1,), (), (0,), (), ()), (4,), (4,), (5, 1), 1),
    "no index": (((0, 1), (), (), (), ()), (2, 3), (4, 5), (0,), 1),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", GATHERS)
def test_gathers(case: str, mode: str) -> None:
    fields, sizes, shape, vectors, extent = GATHERS[case]
    dims = numbers(lax.GatherDimensionNumbers, *fields)
    where = ids(mode, *vectors, extent=extent)
    check(lambda x, i: lax.gather(x, i, dims, sizes, mode=mode), f32(*shape), where)
    if mode == "fill" and case in ("rows", "windows"):
        check(lambda x, i: lax.gather(x, i, dims, sizes, mode=mode), i32(*shape), where)
        check(lambda x, i: lax.gather(x, i, dims, sizes, mode=mode, fill_value=3), f32(*shape), where)


SCATTERS = [
    *itertools.product(GATHERS, ["scatter", "scatter_add"], ["clip", "fill"]),
    *itertools.product(["rows", "windows"], ["scatter_sub", "scatter_mul", "scatter_min", "scatter_max"], ["fill"]),
]


@pytest.mark.parametrize(("case", "name", "mode"), SCATTERS)
def test_scatters(case: str, name: str, mode: str) -> None:
    fields, sizes, shape, vectors, extent = GATHERS[case]
    dims = numbers(lax.ScatterDimensionNumbers, *fields)
    gather = numbers(lax.GatherDimensionNumbers, *fields)
    array, where = f32(*shape), ids(mode, *vectors, extent=extent)
    window = jax.eval_shape(lambda x, i: lax.gather(x, i, gather, sizes, mode="clip"), array, where).shape
    scatter = getattr(lax, name)
    check(lambda x, i, u: scatter(x, i, u, dims, mode=mode), array, where, f32(*window))


@pytest.mark.parametrize("start", [(0, 0), (1, 2), (-1, 9), (9, 1)])
@pytest.mark.parametrize("sizes", [(6, 1), (1, 4), (2, 3), (6, 4), (1, 1)])
def test_dynamic_slices(sizes: tuple[int, int], start: tuple[int, int]) -> None:
    at = [jnp.int32(each) for each in start]
    check(lambda x, i, j: lax.dynamic_slice_p.bind(x, i, j, slice_sizes=sizes), f32(6, 4), *at)
    check(lambda x, y, i, j: lax.dynamic_update_slice_p.bind(x, y, i, j), f32(6, 4), f32(*sizes), *at)
