"""Reads and updates at looked-up positions are those of the whole array, wherever XLA puts them together."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import partita as pt

MESH = pt.Mesh(a=2)
X = np.arange(8, dtype=np.float32)
LONG = np.arange(512, dtype=np.float32)
PART = -np.arange(1, 5, dtype=np.float32)
SCATTER = lax.ScatterDimensionNumbers((0,), (), (0,))
GATHER = lax.GatherDimensionNumbers((0,), (), (0,))


def agrees(function: Callable[..., Any], *args: Any, expected: Any = None) -> None:
    """The results of the plan with a tiled result, compiled and as a graph, are those of JAX, op by op."""
    expected = function(*map(jnp.asarray, args)) if expected is None else expected
    plan = pt.plan(function, MESH, *args).tile("result", 0, "a")
    np.testing.assert_array_equal(plan.compile()(*args), expected)
    np.testing.assert_array_equal(plan.lower("collective").run(*args), expected)


@pytest.mark.parametrize("at", [0, 1, 5, -2, 8])
@pytest.mark.parametrize("kind", ["set", "add", "subtract", "multiply", "max", "min"])
def test_one_element_of_an_array_that_a_device_slices_is_updated(kind: str, at: int) -> None:
    agrees(lambda x: getattr(jnp.sort(x).at[at], kind)(100.0), X)


@pytest.mark.parametrize("start", [-3, 0, 3, 6, 9])
def test_one_window_of_an_array_that_a_device_slices_is_updated(start: int) -> None:
    agrees(lambda x, u, i: lax.dynamic_update_slice(jnp.sort(x), u, (i,)), X, PART, np.int32(start))
    for mode in ("fill", "clip"):
        agrees(lambda x, u, i, m=mode: lax.scatter_add(jnp.sort(x), i[None], u, SCATTER, mode=m), X, PART, np.int32(start))


def test_one_update_of_each_row_of_a_batch_is_made() -> None:
    agrees(jax.vmap(lambda x, i: jnp.sort(x).at[i].mul(3.0)), X.reshape(4, 2), np.array([1, 0, 5, -1], np.int32))
    agrees(jax.vmap(lambda x, i: jnp.sort(x).at[i].mul(3.0)), X.reshape(1, 8).repeat(2, 0)[:, :4], np.array([1, 9], np.int32))


def test_one_update_has_the_derivative_of_the_original() -> None:
    def loss(x: jax.Array, u: jax.Array) -> jax.Array:
        return (jnp.tanh(jnp.sort(x).at[1].mul(u)) ** 2).sum()

    u = np.float32(0.3)
    compiled = pt.plan(loss, MESH, X, u).tile("x", 0, "a").compile()
    for ours, theirs in zip(jax.grad(compiled, (0, 1))(X, u), jax.grad(loss, (0, 1))(X, u), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("start", [-3, 2, 6, 9])
def test_one_window_that_each_device_reads_a_part_of_is_clamped(mode: str, start: int) -> None:
    agrees(lambda x, i: lax.gather(x, i[None], GATHER, (4,), mode=mode), X, np.int32(start))


NARROW: dict[str, Callable[..., Any]] = {
    "dynamic_slice": lambda x, u, i: lax.dynamic_slice(x, (i,), (4,)),
    "dynamic_slice of another": lambda x, u, i: lax.dynamic_slice(lax.dynamic_slice(x, (i,), (300,)), (i,), (4,)),
    "dynamic_update_slice": lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)),
    "gather": lambda x, u, i: lax.gather(x, i[None], GATHER, (4,), mode="clip"),
    "scatter": lambda x, u, i: lax.scatter(x, i[None], u, SCATTER, mode="fill"),
    "scatter_add": lambda x, u, i: lax.scatter_add(x, i[None], u, SCATTER, mode="clip"),
}


@pytest.mark.parametrize("start", [np.int8(100), np.uint8(250), np.int16(400)])
@pytest.mark.parametrize("name", NARROW)
def test_positions_of_a_narrow_type_do_not_overflow_in_a_long_array(name: str, start: Any) -> None:
    # JAX itself writes outside the array at a narrow start, so the expected result uses i32.
    agrees(NARROW[name], LONG, PART, start, expected=NARROW[name](jnp.asarray(LONG), jnp.asarray(PART), jnp.int32(start)))
