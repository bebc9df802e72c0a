"""`plan.resolve`: a way out of a conflict, by number or by its tactic."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.advice.open_conflicts import open_keys
from partita.compiler.advice.ways_out import to_take, tried_ways_out
from partita.compiler.cost.costs import price

A = np.ones((64, 64), np.float32)


def symmetric(a: Any) -> Any:
    return a + a.T


@pytest.fixture
def plan() -> pt.Plan:
    return pt.plan(symmetric, pt.Mesh(data=4), A).tile("a", 0, "data")


def test_a_way_out_is_taken_by_number_or_by_its_tactic(plan: pt.Plan) -> None:
    (conflict,) = plan.conflicts
    for number, way in enumerate(conflict.resolutions):
        resolved = plan.resolve(conflict, number)
        assert (resolved.trace, list(resolved.conflicts)) == (plan.resolve(conflict, way.tactic).trace, [])
        assert resolved.trace == plan.resolve(conflict, way).trace
        assert resolved.bytes_per_device() == way.bytes
    assert plan.resolve(conflict).trace == plan.resolve(conflict, 0).trace


def test_a_way_out_before_all_tactics_is_what_a_replay_of_its_trace_makes() -> None:
    """The tactics are applied again: one that would be refused then is no way out."""

    def function(x: Any) -> Any:
        return jnp.tanh(x @ x.T) @ x

    plan = pt.plan(function, pt.Mesh(data=4, model=2), A).tile("x", 0, "data").tile("tanh#0", 1, "model")
    ways = [way for conflict in plan.conflicts for way in conflict.resolutions]
    assert any(way.first for way in ways)
    for way in ways:
        made = plan.apply(way)
        again = pt.replay(function, made.mesh, made.trace, A)
        assert (again.layout(), again.counts(), again.trace) == (made.layout(), made.counts(), made.trace)


def test_a_conflict_is_explained_with_its_claims_and_ways_out(plan: pt.Plan) -> None:
    (conflict,) = plan.conflicts
    first, *steps = plan.explain(conflict).steps
    assert first.text.startswith("conflict on `data` in `add`")
    assert [step.tactics for step in steps] == [(1,), (1,), (), *(() for _ in conflict.resolutions)]
    left = "left open: a device receives 12.0 KiB and computes 4.10 kFLOP. Each device of `data` runs it in full"
    assert [step.text for step in steps] == [*conflict.claims, left, *(f"way out: {way!r}" for way in conflict.resolutions)]


def test_to_keep_what_the_op_makes_whole_ends_a_conflict_at_the_price_of_leaving_it_open(plan: pt.Plan) -> None:
    kept = plan.replicate("result", "data")
    assert (list(kept.conflicts), price(kept)) == ([], price(plan))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.compile()


def test_an_op_that_a_conflict_leaves_whole_and_the_collective_for_it_name_the_conflict(plan: pt.Plan) -> None:
    """Otherwise they say that no index of the op is on the axis, although both operands are."""
    (gather,) = (each for each in plan.collectives() if each.kind == "all_gather")
    (conflict,) = plan.conflicts
    said = f"because of a conflict on `data`: {'; '.join(conflict.claims)}; plan.explain(plan.conflicts[0]) shows the ways out"
    assert said in plan.explain(gather)
    assert f"whole along `data`, {said}" in plan.explain("add#0")
    assert "conflict" not in plan.resolve(conflict).explain("add#0")


def test_a_list_of_conflicts_says_what_shows_the_ways_out(plan: pt.Plan) -> None:
    said = "plan.explain(plan.conflicts[0]) shows the ways out of the first one"
    assert str(plan.conflicts).endswith(said) and said in getattr(plan.conflicts, "_repr_html_")()  # noqa: B009
    assert str(plan.resolve(plan.conflicts[0]).conflicts) == "no open conflicts"


@pytest.mark.parametrize("choice", [17, -1, True, "tile('b', 0, 'data')", None])
def test_another_choice_is_refused(plan: pt.Plan, choice: Any) -> None:
    with pytest.raises(pt.Error, match="is not a way out of this conflict"):
        plan.resolve(plan.conflicts[0], choice)


def test_a_conflict_of_another_plan_is_refused(plan: pt.Plan) -> None:
    conflict: Any = plan.conflicts[0]
    wrong: Any = "add"
    for other, given in ((plan.resolve(conflict), conflict), (pt.plan(symmetric, plan.mesh, A), conflict), (plan, wrong)):
        with pytest.raises(pt.Error, match=r"not an open conflict|takes a conflict"):
            other.resolve(given)


def apart(arrays: Sequence[Any]) -> Any:
    return [each + each.T for each in arrays]


def in_pairs(arrays: Sequence[Any]) -> Any:
    return [jnp.tanh(each @ each.T) @ jnp.sin(each + each.T) for each in arrays]


def in_a_chain(arrays: Sequence[Any]) -> Any:
    x, *others = arrays
    for each in others:
        x = jnp.tanh(x @ x.T + each.T) @ each + x
    return x


def of_one_sum(arrays: Sequence[Any]) -> Any:
    return sum(each.T + each for each in arrays)


def trained(arrays: Sequence[Any]) -> Any:
    def loss(arrays: Sequence[Any]) -> Any:
        return jnp.mean(in_a_chain(arrays) ** 2)

    return cast("Any", jax.grad(loss)(arrays))


def trained_in_pairs(arrays: Sequence[Any]) -> Any:
    def loss(arrays: Sequence[Any]) -> Any:
        return sum(jnp.mean(each**2) for each in in_pairs(arrays))

    return cast("Any", jax.grad(loss)(arrays))


@pytest.fixture(params=[apart, in_pairs, in_a_chain, of_one_sum, trained, trained_in_pairs])
def many(request: pytest.FixtureRequest) -> pt.Plan:
    """A plan with several conflicts, which touch each other or do not."""
    function: Callable[[Sequence[Any]], Any] = request.param
    count = 2 if function in (trained, trained_in_pairs) else 5
    plan = pt.plan(function, pt.Mesh(data=4, model=2), [A] * count).apply(pt.Tile({"arrays/*": 0}, "data"))
    assert len(plan.conflicts) > 3
    return plan


def test_ways_out_of_many_conflicts_are_those_that_each_has_alone(many: pt.Plan) -> None:
    alone = [tried_ways_out(many, [key])[key].found for key in open_keys(many)]
    together = [conflict.resolutions for conflict in many.conflicts]
    assert together == alone
    assert [[way.memory for way in ways] for ways in together] == [[way.memory for way in ways] for ways in alone]


def test_all_conflicts_are_resolved_as_one_after_another(many: pt.Plan) -> None:
    one_by_one, seen = many, set[object]()
    while left := [key for key in open_keys(one_by_one) if key not in seen]:
        seen.add(left[0])
        way = to_take(one_by_one, tried_ways_out(one_by_one, left[:1])[left[0]].found)
        one_by_one = one_by_one if way is None else one_by_one.apply(way)
    resolved = many.apply(pt.Resolve())
    assert sorted(resolved.trace.splitlines()) == sorted(one_by_one.trace.splitlines())
    assert (resolved.layout(), resolved.counts()) == (one_by_one.layout(), one_by_one.counts())


def similarities(x: Any) -> Any:
    """A matrix of which nothing but its source is small: to gather that for each operand costs twice what one gather does."""
    distances = jnp.sum((x[:, None] - x[None]) ** 2, -1)
    return jnp.linalg.cholesky(jnp.exp(-distances) + 1)


def test_where_no_way_out_is_cheaper_each_device_runs_the_op_in_full() -> None:
    plan = pt.plan(similarities, pt.Mesh(data=8), jax.ShapeDtypeStruct((512, 8), "float32")).tile("x", 0, "data")
    resolved = plan.apply(pt.Resolve())
    assert resolved.bytes_per_device() == plan.bytes_per_device() == 14_336
    assert str(resolved.flops_per_device()) == str(plan.flops_per_device())
    assert (resolved.trace, [*resolved.conflicts]) == ("tile('x', 0, 'data')\nreplicate('sub#0', 'data')", [])


def weighed_products(x: Any) -> Any:
    """Sums products of all pairs of rows, which the plan makes in parts by itself: as sums along the columns."""
    return x.sum(1) @ (x @ x.T)


def test_a_conflict_stays_open_where_that_costs_less_than_each_way_out_and_says_so() -> None:
    plan = pt.plan(weighed_products, pt.Mesh(data=8), jax.ShapeDtypeStruct((512, 256), "float32")).tile("x", 0, "data")
    resolved = plan.apply(pt.Resolve())
    (conflict,) = resolved.conflicts
    assert resolved.trace == plan.trace
    assert all(way.price > price(plan) for way in conflict.resolutions)
    left = "left open: a device receives 59.5 KiB and computes 17.3 MFLOP. It runs in parts on `data` all the same"
    assert left == conflict.left_open and left in resolved.explain(conflict)
    assert f"help: {left}; no way out costs less, the fastest is tile(" in str(resolved)
    with pytest.warns(pt.ConflictWarning, match="It runs in parts .* all the same. .* only if that costs no more"):
        resolved.compile()


def test_a_conflict_of_blocks_says_which_ones() -> None:
    def joined(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sin(x.reshape(16, -1)) @ w

    plan = pt.plan(joined, pt.Mesh(model=2), np.ones((16, 6, 8), np.float32), np.ones((48, 4), np.float32))
    (conflict,) = plan.apply(pt.Tile({"x": 2, "w": 0}, "model")).conflicts
    assert [claim.split(",")[1] for claim in conflict.claims] == [" in blocks of 4", " in blocks of 24"]


def test_a_plan_says_which_order_of_tactics_leaves_no_conflict() -> None:
    def loss(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jnp.mean((x + jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)

    def step(params: dict[str, jax.Array], x: jax.Array) -> object:
        return jax.tree.map(jnp.subtract, params, jax.grad(loss)(params, x))

    params = {"up": np.ones((64, 256), np.float32), "down": np.ones((256, 64), np.float32)}
    start = pt.plan(step, pt.Mesh(data=4, model=2), params, np.ones((32, 64), np.float32)).apply(pt.DataParallel("data"))
    plan = start.apply(pt.FSDP("data"), pt.Megatron("model"))
    order = "plan.apply(pt.Megatron(axis='model'), pt.FSDP(axis='data'))"
    said = f"dim 0 of `params/down` is in blocks on `data` by tactic 2: apply tactic 3 before it, {order}"
    assert plan.conflicts and f"help: {said}" in str(plan)
    assert not start.apply(pt.Megatron("model"), pt.FSDP("data")).conflicts
