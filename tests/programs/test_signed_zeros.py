"""The sign of a zero: masked terms of a sum are -0.0, the unit of addition, which keeps the sign of any zero."""

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
from lowered import interpreted, lowered_text

import partita as pt

IDS = jnp.array([1, 5, 0, 3])
READS: dict[str, Callable[[jax.Array, jax.Array], Any]] = {
    "rows": lambda table, ids: table[ids],
    "one row": lambda table, ids: table[ids[0]],
    "rows, each of them twice": lambda table, ids: table[jnp.concatenate([ids, ids])],
    "a window": lambda table, ids: lax.dynamic_slice(table, (ids[0], 0), (4, 2)),
}


# XLA:CPU begins its own sums over devices with 0.0 (`lax.psum` of -0.0 is 0.0 there), so the device-local code is interpreted.
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "int32"])
@pytest.mark.parametrize("what", READS)
def test_a_lookup_in_a_tiled_table_keeps_the_sign_of_zero(what: str, dtype: str) -> None:
    table = (jnp.where(jnp.arange(16).reshape(8, 2) % 3 == 0, 2.0, -0.0) * (-1j if dtype == "complex64" else 1)).astype(dtype)
    plan = pt.plan(READS[what], pt.Mesh(a=4), table, IDS).tile("table", 0, "a")
    (found,), expected = interpreted(plan, (table, IDS)), np.asarray(READS[what](table, IDS))
    assert np.asarray(found).tobytes() == expected.tobytes()
    assert lowered_text(plan) == str(plan.spmd())
