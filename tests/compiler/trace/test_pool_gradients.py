"""The gradient of a pool is tiled as the pool is: cotangents go to elements of a device's own windows."""

# JAX annotates these functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax
from sent import sent

import partita as pt

MESH = pt.Mesh(data=8)
IMAGE = jax.random.randint(jax.random.key(0), (1, 32, 16, 2), -2, 3).astype(jnp.float32)

ROW = 16 * 2 * 4
"""The bytes of a row of the image: from either side as the windows want it, in both passes; the rest is of pooled rows."""


def gradient(fold: Any, width: int, stride: int, padding: str | Sequence[tuple[int, int]]) -> Any:
    """The gradient of a sum of a pool's results, each with a weight of its own."""

    def weighed(x: jax.Array) -> jax.Array:
        unit = -np.inf if fold is lax.max else np.inf
        pooled = lax.reduce_window(x, unit, fold, (1, width, width, 1), (1, stride, stride, 1), padding)
        return jnp.sum(jnp.where(jnp.isfinite(pooled), pooled, 0) * jnp.arange(1.0, 1 + pooled.size).reshape(pooled.shape))

    return cast(Any, jax.grad(weighed))


@pytest.mark.parametrize(
    ("fold", "width", "stride", "padding", "received"),
    [
        pytest.param(lax.max, 2, 2, "VALID", 0, id="pools of two"),
        pytest.param(lax.min, 2, 2, "VALID", 0, id="of the least"),
        pytest.param(lax.max, 3, 2, "SAME", 2 * ROW, id="overlapping"),
        pytest.param(lax.max, 3, 2, [(0, 0), (1, 1), (1, 1), (0, 0)], 2 * ROW, id="overlapping, padded at both ends"),
        pytest.param(lax.max, 3, 1, "SAME", 6 * ROW, id="with many ties"),
        pytest.param(lax.max, 2, 4, "VALID", 0, id="with gaps"),
    ],
)
def test_the_gradient_of_a_pool_gathers_nothing(fold: Any, width: int, stride: int, padding: str, received: int) -> None:
    function = gradient(fold, width, stride, padding)
    plan = pt.plan(function, MESH, IMAGE).tile("x", 1, "data").expect(all_gather=0, all_reduce=0)
    assert plan.bytes_per_device() == received
    assert not plan.blocked
    np.testing.assert_array_equal(plan.compile()(IMAGE), function(IMAGE))


@pytest.mark.parametrize("image", [IMAGE, jnp.full_like(IMAGE, -np.inf)], ids=["numbers", "infinities"])
@pytest.mark.parametrize("padding", [[(0, 0), (2, 3), (1, 0), (0, 0)], [(0, 0), (0, 2), (2, 2), (0, 0)]], ids=str)
def test_padding_is_never_chosen(image: jax.Array, padding: Sequence[tuple[int, int]]) -> None:
    function = gradient(lax.max, 2, 2, padding)
    np.testing.assert_array_equal(pt.plan(function, MESH, image).compile()(image), function(image))


def pulled_back(image: jax.Array, fold: Any, *window: Any) -> tuple[Any, jax.Array]:
    """The gradient of a pool by its results' cotangents, and such cotangents."""
    unit = -np.inf if fold is lax.max else np.inf

    def pool(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, unit, fold, *window)

    def gradient(x: jax.Array, ct: jax.Array) -> Any:
        return cast(Any, jax.vjp(pool, x)[1](ct))[0]

    pooled = jax.eval_shape(pool, image)
    return gradient, jnp.arange(1.0, 1 + pooled.size).reshape(pooled.shape)


@st.composite
def pools(draw: st.DrawFn) -> tuple[int, int, int, tuple[int, int]]:
    """The rows of an image, and the width, stride and padding of windows over them."""
    width, stride = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    lo, hi = draw(st.integers(0, width - 1)), draw(st.integers(0, width - 1))
    return draw(st.sampled_from([16, 24, 32, 40])), width, stride, (lo, hi)


@settings(max_examples=25)
@given(pools(), st.sampled_from([lax.max, lax.min]))
def test_a_tiled_gradient_of_any_pool_equals_the_unpartitioned_one(
    pool: tuple[int, int, int, tuple[int, int]], fold: Any
) -> None:
    rows, width, stride, padding = pool
    image = jax.random.randint(jax.random.key(rows), (rows, 2), -2, 3).astype(jnp.float32)
    function, weights = pulled_back(image, fold, (width, 1), (stride, 1), [padding, (0, 0)])
    plan = pt.plan(function, MESH, image, weights).tile("x", 0, "data")
    np.testing.assert_array_equal(plan.compile()(image, weights), function(image, weights))


@pytest.mark.parametrize("padding", [(0, 1), (1, 1), (1, 0)], ids=str)
def test_a_gradient_without_the_pool_itself_sends_halos_alone(padding: tuple[int, int]) -> None:
    """A row of the image, one of positions, and one of cotangents. The elements in a window's last row alone need no more."""
    function, weights = pulled_back(IMAGE, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), padding, (1, 1), (0, 0)])
    plan = pt.plan(function, MESH, IMAGE, weights).tile("x", 1, "data").tile("ct", 1, "data", padded=True)
    assert sent(plan, IMAGE, weights) == {"permute": 3}
    assert plan.bytes_per_device() == 2 * ROW
    np.testing.assert_array_equal(plan.compile()(IMAGE, weights), function(IMAGE, weights))


def test_a_large_window_runs_unpartitioned() -> None:
    function = gradient(lax.max, 5, 1, "SAME")
    plan = pt.plan(function, MESH, IMAGE).tile("x", 1, "data")
    assert "select_and_scatter_add" in str(plan.blocked[0])
    np.testing.assert_allclose(plan.compile()(IMAGE), function(IMAGE))
