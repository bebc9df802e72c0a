"""A maximum over devices is NaN if an element on one of them is."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt

VALUES = [1.5, -2.0, -0.0, float("inf"), 0.25, -float("inf"), 3.0, 1e-3]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("fold", [jnp.max, jnp.min], ids=["max", "min"])
def test_nan_and_infinities_in_a_maximum_over_devices(fold: Callable[[jax.Array], jax.Array], dtype: str) -> None:
    plan = pt.plan(fold, pt.Mesh(d=8), jax.ShapeDtypeStruct((8,), jnp.dtype(dtype))).tile("a", 0, "d")
    assert plan.counts()["all_reduce"] == 1
    compiled = plan.compile()
    rows = [VALUES, VALUES[:3] * 2 + VALUES[4:5] * 2, [-abs(each) for each in VALUES]]
    for row in (*rows, *([*row[:at], float("nan"), *row[at + 1 :]] for row in rows for at in (0, 5))):
        x = jnp.asarray(row, dtype)
        np.testing.assert_array_equal(np.asarray(compiled(x), np.float32), np.asarray(fold(x), np.float32))
