"""Programs as people write them, partitioned in several ways: equal to the unpartitioned run, with as many collectives as one
can count by reasoning, forward and backward."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from typing import Any

import pytest

import partita as pt
from partita.compiler.plan import Plan
from partita.examples import moe

# What JAX's own schedules of one step differ by is about 3e-5.
BOUND = 2e-4

DATA = pt.DataParallel("data", inputs="batch")


def holds(plan: Plan, *args: Any, **counts: int) -> None:
    """The plan communicates as counted, leaves nothing open and nothing whole, and computes what the program does."""
    assert {kind: count for kind, count in plan.counts().items() if count} == counts
    assert not plan.conflicts
    assert not plan.whole
    assert plan.check(*args) <= BOUND


# A mixture of experts. Three parameters are not the experts': the loss and two gradients are summed over the tokens.

MOE = moe.arguments(moe.Config(groups=8, tokens=16, width=16, experts=8, hidden=32))
LAYERS = pytest.mark.parametrize("layer", [moe.mixture, moe.scattered_mixture])


def moe_plan(layer: moe.Layer, mesh: pt.Mesh) -> Plan:
    def step(params: Any, batch: Any) -> Any:
        return moe.train_step(params, batch, layer)

    return pt.plan(step, mesh, *MOE)


@LAYERS
def test_tokens_travel_to_their_experts_and_back_and_so_do_their_gradients(layer: moe.Layer) -> None:
    # Into the experts and out of them, forward and backward; the experts' gradients are whole where the expert lives.
    plan = moe_plan(layer, pt.Mesh(data=8)).apply(*moe.TACTICS)
    assert plan.layout("result/0/experts/w1") == {"result/0/experts/w1": "f32[data, 16, 32]"}
    holds(plan, *MOE, all_to_all=2 + 2, all_reduce=1 + 2)


@LAYERS
def test_a_mixture_of_experts_whose_tokens_alone_are_placed_sums_each_gradient(layer: moe.Layer) -> None:
    holds(moe_plan(layer, pt.Mesh(data=8)).apply(DATA), *MOE, all_reduce=1 + 5)


@LAYERS
def test_experts_that_are_split_themselves_add_the_sums_of_megatron(layer: moe.Layer) -> None:
    # Behind w2 forward, and behind w1 backward: where the experts are, before the tokens travel back.
    megatron = pt.Megatron("model", column={"params/experts/w1": 2}, row={"params/experts/w2": 1})
    plan = moe_plan(layer, pt.Mesh(data=4, model=2)).apply(*moe.TACTICS, megatron)
    assert plan.layout("params/experts/b1") == {"params/experts/b1": "f32[data*2, model*16]"}
    holds(plan, *MOE, all_to_all=2 + 2, all_reduce=1 + 2 + 2)


def test_the_trace_of_expert_parallelism_replays() -> None:
    plan = pt.plan(moe.train_step, pt.Mesh(data=8), *MOE).apply(*moe.TACTICS)
    assert pt.replay(moe.train_step, pt.Mesh(data=8), plan.trace, *MOE).counts() == plan.counts()


def test_a_plan_says_who_sent_the_tokens() -> None:
    plan = pt.plan(moe.train_step, pt.Mesh(data=8), *MOE).apply(*moe.TACTICS)
    sent = [each for each in plan.collectives() if each.kind == "all_to_all"]
    assert all("moe.py" in str(each.source) for each in sent)
    assert "ExpertParallel" in plan.explain("params/experts/w1")
