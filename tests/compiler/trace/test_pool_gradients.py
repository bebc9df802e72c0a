"""The gradient of a pool is tiled as the pool is: cotangents go to elements of a device's own windows."""

# JAX annotates these functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

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


def test_a_large_window_runs_unpartitioned() -> None:
    function = gradient(lax.max, 5, 1, "SAME")
    plan = pt.plan(function, MESH, IMAGE).tile("x", 1, "data")
    assert "select_and_scatter_add" in str(plan.blocked[0])
    np.testing.assert_allclose(plan.compile()(IMAGE), function(IMAGE))
