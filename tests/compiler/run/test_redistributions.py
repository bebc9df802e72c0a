"""Redistributions on devices: the value stays the same, and the collectives in the jaxpr receive the stated bytes."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings, strategies as st
from jaxpr_collectives import collectives, received

import partita as pt

MESH = pt.Mesh(x=2, y=2, z=2)
A = jnp.arange(512.0, dtype=jnp.float32).reshape(8, 8, 8)


@settings(max_examples=12)
@given(
    st.permutations("xyz"),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
)
def test_axes_change_their_dims(order: list[str], before: list[int], after: list[int]) -> None:
    plan = pt.plan(lambda a: a * 2, MESH, A)
    for axis, dim in zip(order, before, strict=True):
        plan = plan.tile("a", dim, axis)
    for axis, dim in zip("xyz", after, strict=True):
        plan = plan.tile("result", dim, axis)
    np.testing.assert_array_equal(plan.compile()(A), A * 2)
    np.testing.assert_array_equal(plan.lower("collective").run(A), A * 2)
    stated = sum(each.bytes for each in plan.collectives())
    assert received(collectives(plan.compile(), A)) == stated


def test_a_dim_is_split_for_an_all_to_all_behind_a_barrier() -> None:
    """XLA:TPU would split it in the op before too, which could then no longer compute its operand by itself."""
    plan = pt.plan(lambda a: a * 2, MESH, A).tile("a", 0, "x").tile("result", 1, "x")
    (jaxpr,) = (each.params["jaxpr"] for each in plan.compile().jaxpr(A).eqns)
    (mapped,) = (each.params["jaxpr"] for each in jaxpr.eqns)
    made = {each.outvars[0]: each.primitive.name for each in mapped.eqns}
    (sent,) = (each for each in mapped.eqns if each.primitive.name == "all_to_all")
    assert made[sent.invars[0]] == "optimization_barrier_but_on_cpu"
