"""Prefix folds of random arrays equal JAX's: unpartitioned, and in blocks on up to two axes, forwards and backwards."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from hypothesis import given, settings, strategies as st
from jax import lax

import partita as pt
from partita.compiler.api.plan import Plan
from partita.dialects.reference.interpret import interpret

MESH = pt.Mesh(a=3, b=2)
NAMES = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
AXES = ("", "a", "b", "ab", "ba")
SPECIAL = st.sampled_from([0.0, np.inf, -np.inf, np.nan])


def scanned(x: Any, name: str, backwards: bool) -> Any:
    return getattr(lax, name)(x, 1, reverse=backwards)


@cache
def planned(name: str, backwards: bool, dtype: str, axes: str) -> Plan:
    """The scan of a matrix, whose columns are in blocks."""
    x = jax.ShapeDtypeStruct((2, 12), jnp.dtype(dtype))
    plan = pt.plan(partial(scanned, name=name, backwards=backwards), MESH, x)
    for axis in axes:
        plan = plan.tile("x", 1, axis)
    return plan


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(seed=st.integers(0, 99), backwards=st.booleans(), axes=st.sampled_from(AXES), special=st.none() | SPECIAL)
def test_a_scan_in_blocks_is_the_scan(name: str, seed: int, backwards: bool, axes: str, special: float | None) -> None:
    x = np.random.default_rng(seed).normal(size=(2, 12)).astype(np.float32)
    if special is not None:
        x[:, seed % 12] = special
    holds(name, backwards, axes, x)


@pytest.mark.parametrize(
    ("name", "dtype"), [("cumsum", "int32"), ("cumprod", "uint32"), ("cummax", "int8"), ("cumsum", "complex64")]
)
def test_other_numbers_are_scanned_in_blocks_too(name: str, dtype: str) -> None:
    x = np.random.default_rng(1).integers(0, 4, (2, 12)).astype(dtype)
    for axes in AXES:
        holds(name, True, axes, x)


def test_a_cumlogsumexp_of_complex_numbers_is_not_scanned_in_blocks() -> None:
    plan = planned("cumlogsumexp", False, "complex64", "a")
    assert [stop.op for stop in plan.blocked] == ["cumlogsumexp"]


def holds(name: str, backwards: bool, axes: str, x: np.ndarray[Any, Any]) -> None:
    plan = planned(name, backwards, x.dtype.name, axes)
    wanted = [np.asarray(scanned(x, name, backwards))]
    assert plan.counts()["all_gather"] == bool(axes)
    for program in (plan.ir(), plan.ir(fused=False)):
        assert disagreement(interpret(program, [x]), wanted) == ""
