"""The price of a plan is one, whether it is told from its parts or by the decisions, unless links are slow or it has loops."""

from dataclasses import replace

import pytest
from generated_seeded import seeded
from small_programs import KINDS, Kind, drawn

from partita.compiler.cost.costs import cost, price


@pytest.mark.parametrize("seed", range(24))
def test_the_price_of_a_plan_is_that_by_which_it_was_decided(seed: int) -> None:
    case = seeded(seed)
    # Decisions count an op once in the trips of a loop around it, and do not know what a later loop computes again.
    plan = replace(case, tactics=tuple(replace(each, loop="") for each in case.tactics)).plan
    assert price(plan) == plan.decisions.price
    assert (cost(plan).bytes, cost(plan).flops) == (plan.bytes_per_device(), plan.flops_per_device().known)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_so_it_is_where_bytes_or_flops_are_large(kind: Kind) -> None:
    for plan in (drawn(kind, seed).plan for seed in range(20)):
        assert price(plan) == plan.decisions.price
