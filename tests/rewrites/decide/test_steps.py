"""The steps by which ops come to run elsewhere: what they are said to save is what decisions then cost, and they are few."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from report_plans import LONG_TACTICS, MESH, array
from saved_plans import SAVED
from sent import BOUND, collectives, counts, lowers_from_its_text, normal
from small_programs import KINDS, Kind, drawn

import partita as pt
from partita.rewrites.decide import decide, price, relocate
from partita.rewrites.decide.choices import Choices
from partita.rewrites.decide.relocate import Relocated
from partita.rewrites.plan_text.verify import check_sums


def _numbers(like: jax.Array) -> jax.Array:
    """Small numbers for weights, and tokens."""
    if jnp.issubdtype(like.dtype, jnp.floating):
        return 0.1 * normal(*like.shape)
    return jnp.arange(like.size, dtype=like.dtype).reshape(like.shape) % 8


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_steps_are_said_to_cost_is_what_decisions_cost(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "START", 0)
    prices, relocated = list[tuple[price.Price | None, price.Price]](), decide.relocated

    def compared(*args: Any) -> Relocated:
        found = relocated(*args)
        check_sums(found.placements, found.carried)
        # Before the decisions fix where results lie.
        numbers = [node.number for node in found.placements.program.nodes]
        said = Choices(found.placements, found.carried).price(numbers, {})
        prices.append(
            (said, decide.moved(decide.Decisions(found.placements.copy(), dict(found.carried), [], [], {}, {})).price)
        )
        return found

    monkeypatch.setattr(decide, "relocated", compared)
    for seed in range(30):
        assert drawn(kind, seed).plan.decisions.moves is not None
    assert len(prices) >= 30 and all(said == cost for said, cost in prices)


def test_a_sum_over_two_axes_may_resolve_over_one_of_them_and_wait_over_the_other() -> None:
    """A gradient over both axes is scattered over `model`, transposed, and reduced over `data` behind."""
    plan = SAVED["values_in_scopes"]().plan()
    between = [move for move in plan.decisions.moves if move.target.pending]
    assert len(between) > 5 and all(len(move.pending) == 2 and len(move.target.pending) == 1 for move in between)
    args = jax.tree.map(_numbers, SAVED["values_in_scopes"]().args)
    assert counts(collectives(plan.compile(), *args)) == plan.counts()
    assert plan.check(*args) <= BOUND
    lowers_from_its_text(plan)
    assert any("reads it as f32[model*32, 4, 16]{+data}" in str(plan.explain(each)) for each in plan.collectives())


@pytest.mark.parametrize("factor", [1.0, -0.5])
def test_a_maximum_over_an_axis_does_not_wait_in_ops_that_are_linear(factor: float) -> None:
    """The sum of maxima of blocks is not the maximum of their sums."""

    def best(x: jax.Array, w: jax.Array) -> jax.Array:
        return factor * jnp.sum(jnp.max(x @ w, 1))

    args = normal(64, 64), normal(64, 1 << 16)
    plan = pt.plan(best, pt.Mesh(data=8), *args).tile("x", 0, "data").tile("w", 1, "data")
    assert plan.decisions.placements.elsewhere and plan.check(*args) <= BOUND


def test_ops_that_read_one_weight_are_one_region(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, grown = list[int](), relocate._Search.grown  # pyright: ignore[reportPrivateUsage]

    def counted(search: Any, node: Any, *args: Any) -> Any:
        starts.append(node.number)
        return grown(search, node, *args)

    def repeated(w: jax.Array, x: jax.Array) -> jax.Array:
        for _ in range(200):
            x = jnp.tanh(x @ w) + x * 2
        return jnp.sum(x)

    monkeypatch.setattr(relocate._Search, "grown", counted)  # pyright: ignore[reportPrivateUsage]
    plan = pt.plan(repeated, MESH, array(8, 8), array(64, 8)).apply(*LONG_TACTICS)
    # Each product reads the weight along any of three indices: from each of them, the same 200 ops would be tried.
    assert plan.decisions.moves and 0 < len(starts) < 2 * 200
