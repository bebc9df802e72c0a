"""A Llama-style model with data parallelism, Megatron and ZeRO-3 has the collectives that an expert writes by hand."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from functools import cache
from typing import Any

import jax
import numpy as np
from jaxpr_collectives import collectives, counts, received

import partita as pt
from partita.benchmarks import llama_by_hand
from partita.compiler.api.plan import Plan
from partita.examples import llama

LAYERS, PARTS, STACKS, ENDS = 3, 3, 9, 2
SMALL = llama.Config(vocabulary=131, layers=LAYERS, length=8, width=32, head=4, hidden=64)


@cache
def planned() -> tuple[Plan, Any]:
    args = llama.arguments(SMALL)
    return pt.plan(llama.train_step, llama.MESH, *args).apply(*llama.TACTICS), args


def test_it_trains_as_unpartitioned() -> None:
    plan, args = planned()
    assert plan.check(*args) < 2e-4


def test_each_collective_is_one_that_the_strategy_asks_for() -> None:
    plan, args = planned()
    assert not plan.conflicts and not plan.blocked and not plan.whole
    trips = LAYERS * PARTS
    assert {kind: count for kind, count in plan.counts().items() if count} == {
        # A layer's parameters forward and for its recomputation; the embedding and the last norm once for all parts.
        "all_gather": 2 * STACKS * trips + ENDS,
        # All gradients once, after the loop over the micro-batches.
        "reduce_scatter": STACKS + ENDS,
        # Megatron's two in each direction and one in the recomputation; the loss; the norm of the gradients.
        "all_reduce": (2 + 1 + 2) * trips + 1 + 1,
    }
    assert counts(collectives(plan.compile(), *args)) == plan.counts()


def test_its_collectives_are_those_of_the_program_by_hand() -> None:
    plan, args = planned()
    compiled: Any = plan.compile()
    leaves, tree = jax.tree.flatten(args)
    where = jax.tree.unflatten(tree, compiled.in_shardings[: len(leaves)])
    by_hand = llama_by_hand.train_step(where[2].mesh, args[1])
    found = collectives(by_hand, *args)
    assert counts(found) == plan.counts()
    assert received(found) == plan.bytes_per_device()
    placed = jax.device_put(args, where)
    for ours, theirs in zip(*map(jax.tree.leaves, (compiled(*placed), by_hand(*placed))), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)
