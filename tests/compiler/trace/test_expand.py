"""A primitive that is taken apart computes the same, in NumPy and on eight devices, and nothing of it runs whole."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from call import Call
from calls_expanded import numbers, sparse_arrays
from calls_folds import several

import partita as pt
from partita.dialects.reference.interpret import interpret

FOLDS = [*several()]
CALLS = [*FOLDS, *sparse_arrays(), *numbers()]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_what_a_primitive_becomes_computes_the_same(call: Call) -> None:
    expected = jax.tree.leaves(jax.jit(call.function)(*call.args))
    plan = pt.plan(call.function, pt.Mesh(a=8), *call.args)
    assert plan.whole == []
    args = [np.asarray(each) for each in (*call.args, *plan.source.traced.consts)]
    assert disagreement(interpret(plan.source.traced.main, args), expected) == ""
    assert disagreement(jax.tree.leaves(plan.compile()(*call.args)), expected) == ""


# An array without elements is not tiled.
@pytest.mark.parametrize("call", [call for call in FOLDS if call.what != "none"], ids=str)
def test_a_batch_dim_goes_through_it(call: Call) -> None:
    expected = jax.tree.leaves(jax.jit(call.function)(*call.args))
    plan = pt.plan(call.function, pt.Mesh(a=8), *call.args)
    for name in plan.source.traced.arg_names[: len(call.args)]:
        plan = plan.tile(name, 0, "a")
    plan = plan.propagate("a")
    assert not [each for each in plan.collectives() if each.kind == "all_gather"]
    assert disagreement(jax.tree.leaves(plan.compile()(*call.args)), expected) == ""


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint16"])
@pytest.mark.parametrize("first", [True, False])
def test_the_upper_half_of_a_product_with_a_number(dtype: str, first: bool):
    x = jnp.asarray([-128, -1, 0, 127] if dtype[0] == "i" else [0, 1, 200, 255]).astype(dtype) * jnp.ones((), dtype)

    def product(x: Any) -> Any:
        return jax.lax.mulhi(jnp.asarray(3, dtype), x) if first else jax.lax.mulhi(x, jnp.asarray(3, dtype))

    plan = pt.plan(product, pt.Mesh(a=2), x).tile("x", 0, "a")
    assert (plan.compile()(x) == jax.jit(jax.lax.mulhi)(x, jnp.full(4, 3, dtype))).all()


def test_the_upper_half_of_a_product_with_a_number_of_pythons():
    x = jnp.asarray([2**30, -(2**31), 7, -1])
    plan = pt.plan(lambda x: jax.lax.mulhi(x, 3), pt.Mesh(a=2), x).tile("x", 0, "a")
    assert (plan.compile()(x) == jax.lax.mulhi(x, jnp.full(4, 3))).all()
