"""Every element type works everywhere: in text and back, in NumPy, and on eight devices."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import partita as pt
from partita.dialects.ground.dtypes import dtype_of, kind_of
from partita.dialects.layouts import parse_array
from partita.dialects.reference.interpret import interpret
from partita.dialects.types import ArrayType

Array = Any
RANDOM = np.random.default_rng(3)
SHORT = {
    "bool": "bool",
    "int2": "i2",
    "uint2": "u2",
    "int4": "i4",
    "uint4": "u4",
    "int8": "i8",
    "uint16": "u16",
    "float16": "f16",
    "bfloat16": "bf16",
    "float4_e2m1fn": "f4_e2m1fn",
    "float8_e3m4": "f8_e3m4",
    "float8_e4m3": "f8_e4m3",
    "float8_e4m3b11fnuz": "f8_e4m3b11fnuz",
    "float8_e4m3fn": "f8_e4m3fn",
    "float8_e4m3fnuz": "f8_e4m3fnuz",
    "float8_e5m2": "f8_e5m2",
    "float8_e5m2fnuz": "f8_e5m2fnuz",
    "float8_e8m0fnu": "f8_e8m0fnu",
    "complex64": "c64",
}


def random(dtype: np.dtype[Any]) -> Array:
    match kind_of(dtype):
        case "b":
            return RANDOM.integers(0, 2, (8, 4)).astype(bool)
        case "c":
            return (RANDOM.normal(size=(8, 4)) + 1j * RANDOM.normal(size=(8, 4))).astype(dtype)
        case "f":
            # Powers of two: every float type has them, and some have no other numbers.
            return np.exp2(RANDOM.integers(-1, 2, (8, 4))).astype(np.float32).astype(dtype)
        case kind:
            return RANDOM.integers(0 if kind == "u" else -2, 2, (8, 4)).astype(dtype)


def stored(x: Array, y: Array) -> list[Array]:
    """Ops for every type."""
    return [lax.select(x == y, x, y), lax.transpose(x, (1, 0)), x.astype(jnp.complex64)]


def everywhere(x: Array, y: Array) -> list[Array]:
    """Ops that rearrange an array."""
    rows = jnp.array([1, 3, 5])
    return [*stored(x, y), x[rows], x.at[rows].set(y[:3])]


def numbers(x: Array, y: Array) -> list[Array]:
    # XLA:CPU casts types of less than a byte to a type that it then refuses.
    narrow = x.dtype.name in ("int4", "uint4", "float4_e2m1fn")
    products = [] if narrow else [lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=wide(x))]
    return [*everywhere(x, y), x + y, x * y, *products]


def wide(x: Array) -> Any:
    return jnp.complex64 if x.dtype.kind == "c" else jnp.int32 if jnp.issubdtype(x.dtype, jnp.integer) else jnp.float32


def ordered(x: Array, y: Array) -> list[Array]:
    return [
        *numbers(x, y),
        x.astype(jnp.float32).astype(x.dtype),
        lax.max(x, y),
        x < y,
        jnp.argmax(x, 1),
        lax.reduce_max(x, (1,)),
        lax.sort(x, dimension=1),
    ]


def integers(x: Array, y: Array) -> list[Array]:
    bits = [lax.bitwise_and(x, y), lax.bitwise_not(x), lax.clz(x), lax.shift_left(x, lax.full_like(x, 1))]
    right = [lax.shift_right_arithmetic(x, lax.full_like(x, 1)), lax.shift_right_logical(x, lax.full_like(x, 1))]
    return [*ordered(x, y), *bits, *right, lax.div(x, y), lax.rem(x, y)]


def function_of(dtype: np.dtype[Any]) -> Any:
    # XLA:CPU sorts, gathers and sends two-bit types wrongly.
    if dtype.name in ("int2", "uint2"):
        return stored
    if dtype.name in ("bool", "float8_e8m0fnu"):
        return everywhere
    return {"c": numbers, "f": ordered}.get(kind_of(dtype), integers)


def differences(found: list[Array], expected: list[Array]) -> list[int]:
    """The results that differ in type or by more than a rounding."""
    return [at for at, pair in enumerate(zip(found, expected, strict=True)) if not near(*map(np.asarray, pair))]


def near(a: Array, b: Array) -> bool:
    rounding = float(ml_dtypes.finfo(b.dtype).eps) if kind_of(b.dtype) in "fc" else 0
    a_wide, b_wide = (each.astype(np.complex128) for each in (a, b))
    return a.dtype == b.dtype and np.allclose(a_wide, b_wide, rtol=4 * rounding, atol=4 * rounding, equal_nan=True)


@pytest.mark.parametrize("name", SHORT)
def test_a_type_is_short_in_text_and_comes_back(name: str) -> None:
    array = ArrayType.whole(name, (8, 4))
    assert array.text == f"{SHORT[name]}[8, 4]"
    assert parse_array(array.text) == (name, array.layout)


@pytest.mark.parametrize("name", SHORT)
def test_a_program_of_a_type_computes_what_jax_does(name: str) -> None:
    dtype = dtype_of(name)
    function, x, y = function_of(dtype), random(dtype), random(dtype)
    expected = jax.jit(function)(x, y)
    whole = pt.plan(function, pt.Mesh(a=8), x, y)
    args = [np.asarray(each) for each in (x, y, *whole.source.traced.consts)]
    assert differences(interpret(whole.source.traced.main, args), expected) == []
    placed = whole.tile("x", 0, "a").tile("y", 0, "a")
    placed.spmd().verify()
    assert differences(placed.compile()(x, y), expected) == []
