"""Programs that nest as deeply as JAX allows: regions are traced one after another, not recursively."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax.numpy as jnp
import pytest
from jax import lax

import partita as pt

Array = Any
MESH = pt.Mesh(a=2)
X = jnp.arange(8.0)


def conds(depth: int, x: Array) -> Array:
    return lax.cond(x[0] < depth, lambda x: conds(depth - 1, x), lambda x: x * 2, x) if depth else x + 1


def whiles(depth: int, x: Array) -> Array:
    return lax.while_loop(lambda c: c[0] < 1, lambda c: whiles(depth - 1, c), x) if depth else x + 1


@pytest.mark.parametrize(("nest", "depth"), [(conds, 70), (whiles, 100)], ids=["conds", "whiles"])
def test_a_deep_nest_is_lowered_for_devices(nest: Any, depth: int) -> None:
    """Lowered, not compiled, because XLA needs seconds for such a nest."""
    plan = pt.plan(lambda x: nest(depth, x), MESH, X).tile("x", 0, "a")
    assert plan.compile().lower(X).as_text().count("stablehlo.while" if nest is whiles else "stablehlo.case") >= depth


@pytest.mark.parametrize("nest", [conds, whiles])
def test_a_nest_gives_what_jax_gives(nest: Any) -> None:
    plan = pt.plan(lambda x: nest(12, x), MESH, X).tile("x", 0, "a")
    assert plan.check(X) == 0
