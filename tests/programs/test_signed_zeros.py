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
from lowered import interpreted, lowers_from_its_text

import partita as pt

IDS = jnp.array([1, 5, 0, 3])
READS: dict[str, Callable[[jax.Array, jax.Array], Any]] = {
    "rows": lambda table, ids: table[ids],
    "one row": lambda table, ids: table[ids[0]],
    "rows, each of them twice": lambda table, ids: table[jnp.concatenate([ids, ids])],
    "a window": lambda table, ids: lax.dynamic_slice(table, (ids[0], 0), (4, 2)),
    "rows, moved": lambda table, ids: table[ids].reshape(2, 2, 2).transpose(2, 0, 1),
    "rows, twice": lambda table, ids: (table[ids], table[ids].T),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "int32"])
@pytest.mark.parametrize("what", READS)
def test_a_lookup_in_a_tiled_table_keeps_the_sign_of_zero(what: str, dtype: str) -> None:
    table = (jnp.where(jnp.arange(16).reshape(8, 2) % 3 == 0, 2.0, -0.0) * (-1j if dtype == "complex64" else 1)).astype(dtype)
    plan = pt.plan(READS[what], pt.Mesh(a=4), table, IDS).tile("table", 0, "a")
    expected = [np.asarray(each).tobytes() for each in jax.tree.leaves(READS[what](table, IDS))]
    assert [np.asarray(each).tobytes() for each in interpreted(plan, (table, IDS))] == expected
    assert [np.asarray(each).tobytes() for each in jax.tree.leaves(plan.compile()(table, IDS))] == expected
    lowers_from_its_text(plan)


def test_a_lookup_whose_result_is_tiled_keeps_it_too() -> None:
    table = jnp.where(jnp.arange(32).reshape(16, 2) % 3 == 0, 2.0, -0.0)
    plan = pt.plan(lambda table, ids: table[ids], pt.Mesh(a=2, b=2), table, IDS)
    plan = plan.tile("table", 0, "a").tile("table", 0, "b").tile("result", 0, "a", propagate=False)
    assert plan.counts()["reduce_scatter"] == 1
    assert np.asarray(plan.compile()(table, IDS)).tobytes() == np.asarray(table[IDS]).tobytes()


def test_lookups_that_are_added_before_their_sum_are_sums() -> None:
    table = jnp.arange(16.0).reshape(8, 2)
    plan = pt.plan(lambda table, ids: table[ids] + table[ids + 1], pt.Mesh(a=4), table, IDS).tile("table", 0, "a")
    assert "pick" not in str(plan.ir()) and plan.counts()["all_reduce"] == 1
    assert np.array_equal(plan.compile()(table, IDS), table[IDS] + table[IDS + 1])
