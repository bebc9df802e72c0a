"""Gathers start ahead of their uses by price: as many bytes as save time, of those for which there is memory."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import re
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from lowered import lowers_from_its_decisions, lowers_from_its_text, parse

import partita as pt
from partita.compiler.plan import lowering
from partita.dialects.ground.amounts import of_bytes
from partita.rewrites.decide.ahead import COUNTS, SLIGHT, Link
from partita.rewrites.decide.decide import Move, first_use
from partita.rewrites.plan_text import stages

WIDTH, LAYERS = 256, 6
ARGS = [jnp.ones((WIDTH, WIDTH)) / WIDTH] * LAYERS, jnp.ones((4096, WIDTH)) / WIDTH


def loss(params: Any, x: Any) -> Any:
    for w in params:
        x = jnp.tanh(x @ w)
    return (x * x).sum()


def zero3(mesh: pt.Mesh, fn: Any = loss) -> pt.Plan:
    return pt.plan(jax.grad(fn), mesh, *ARGS).apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params"))


PLAN = zero3(pt.Mesh(data=8))


def gathers(plan: pt.Plan) -> list[Move]:
    return [move for move in plan.decisions.moves if move.waits]


def most_ahead(plan: pt.Plan) -> int:
    """The most bytes that are gathered, and of which the use has not begun, while any use runs."""
    every, placements = gathers(plan), plan.decisions.placements
    found = 0
    for use in every:
        ahead = [each for each in every if each.during and first_use(each.during) <= first_use(use) < first_use(each)]
        found = max(found, sum(placements.local_bytes(each.value, each.target) for each in ahead))
    return found


def test_gathers_start_with_an_earlier_use_and_no_more_than_is_said_is_ahead() -> None:
    ahead = PLAN.decisions.ahead[0]
    assert 0 < most_ahead(PLAN) <= ahead.bytes <= ahead.room
    assert ahead.exposed[ahead.bytes] < ahead.exposed[0]
    assert all(first_use(move.during) < first_use(move) for move in gathers(PLAN) if move.during)


def test_none_saves_more_of_those_for_which_there_is_memory() -> None:
    ahead = PLAN.decisions.ahead[0]
    assert len(ahead.exposed) == len(COUNTS)
    fit = [exposed for size, exposed in ahead.exposed.items() if size <= ahead.room]
    assert ahead.exposed[ahead.bytes] <= min(fit) * (1 + 1 / SLIGHT) + 1e-6
    less = [exposed for size, exposed in ahead.exposed.items() if size < ahead.bytes]
    assert ahead.exposed[ahead.bytes] * (1 + 1 / SLIGHT) < min(less), "the fewest bytes that take almost the least time"


def test_what_a_device_waits_for_is_sent_before_gathers_that_have_started() -> None:
    link, (first, second, *_) = Link(), gathers(PLAN)
    link.start(first, 0.0, 3.0)
    link.start(second, 0.0, 3.0)
    assert link.send(1.0, 1.0) == 4.0, "the first one is on its way"
    assert (link.wait(second), link.wait(first)) == (7.0, 3.0)


def test_the_smallest_parameters_do_not_wait_and_a_plan_says_so() -> None:
    """Each layer has a scale, of which all take less than a thousandth of what a device stores."""

    def scaled(params: Any, x: Any) -> Any:
        for w, scale in zip(*params, strict=True):
            x = jnp.tanh((x * scale[None]) @ w)
        return (x * x).sum()

    args = (ARGS[0], [jnp.ones(WIDTH)] * LAYERS), ARGS[1]
    plan = pt.plan(jax.grad(scaled), pt.Mesh(data=8), *args)
    plan = plan.apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params"))
    names = plan.source.addresses.names
    assert {names[move.value][:9] for move in gathers(plan)} == {"params/0/"}
    said = [each for each in plan.collectives() if "it waits for no use: it is small" in str(plan.explain(each))]
    assert len(said) == 2 * (LAYERS - 1)
    assert plan.counts()["all_gather"] == 2 * LAYERS + 2 * LAYERS - 1
    assert plan.check(*args) < 1e-3
    lowers_from_its_decisions(plan)


def test_what_is_sent_and_computed_stays_the_same() -> None:
    """With the memory of a plan in which none is ahead, none is: all else is as with more."""
    alone = zero3(pt.Mesh(data=8, memory=f"{PLAN.memory().bytes - most_ahead(PLAN)}B"))
    assert most_ahead(alone) == 0 and alone.memory().bytes < PLAN.memory().bytes
    assert alone.counts() == PLAN.counts() and alone.bytes_per_device() == PLAN.bytes_per_device()
    assert all((a == b).all() for a, b in zip(alone.compile()(*ARGS), PLAN.compile()(*ARGS), strict=True))
    assert PLAN.check(*ARGS) < 1e-4


def test_a_gather_stands_where_it_starts() -> None:
    ops = [op.name for op in PLAN.spmd().walk() if op.name in ("spmd.all_gather", "lax.dot_general")]
    assert ("spmd.all_gather", "spmd.all_gather") in {*pairwise(ops)}, "one for a later product stands before the next one"
    lowers_from_its_text(PLAN)
    lowers_from_its_decisions(PLAN)


def test_one_that_is_computed_later_starts_once_it_is_there() -> None:
    """Half of the weights are cast, which is an op between two uses."""

    def cast(params: Any, x: Any) -> Any:
        for at, w in enumerate(params):
            x = jnp.tanh(x @ (w.astype(jnp.bfloat16).astype(w.dtype) if at % 2 else w))
        return (x * x).sum()

    plan = zero3(pt.Mesh(data=8), cast)
    program = plan.source.program
    assert most_ahead(plan) > 0
    for move in gathers(plan):
        assert move.during is None or program.producer[move.value] < first_use(move.during)[0]
    assert plan.check(*ARGS) < 1e-3


def test_a_text_in_which_a_gather_starts_with_no_earlier_use_is_refused() -> None:
    text = str(lowering.decisions(PLAN))
    found = re.search(r"plan.move<(\d+): [^>]*, during \d+", text)
    assert found is not None
    for wrong, why in {
        re.sub(r"during \d+", f"during {found[1]}", found[0]): "whose use is not before its own",
        found[0].replace(", waits", ""): "both have to say `waits`",
    }.items():
        with pytest.raises(pt.Error, match=why):
            stages.decisions_of(parse(text.replace(found[0], wrong)))


def test_a_plan_says_what_is_ahead_and_a_gather_with_which_use_it_starts() -> None:
    ahead = PLAN.decisions.ahead[0]
    assert f"gathers start ahead of their uses, {of_bytes(ahead.bytes)} at most: a device of v5e is estimated to wait" in str(
        PLAN
    )
    each = next(each for each in PLAN.collectives() if each.kind == "all_gather" and PLAN.decisions.moves[each.move].during)
    said = str(PLAN.explain(each))
    assert "it starts with the use of `params/" in said and f"there is memory for {of_bytes(ahead.room)}" in said
