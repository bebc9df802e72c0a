"""A primitive that is taken apart computes the same, in NumPy and on eight devices, and nothing of it runs whole."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import jax
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
