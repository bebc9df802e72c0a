"""What an error offers is tried: it can be applied, and costs what it says."""

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import chain

import partita as pt
from partita.dialects.ground.amounts import of_bytes

CUBE = np.ones((16, 16, 16), np.float32)
ARGS = [np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8))]


def added(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
    return c + (a + b)


def doubled(x: jax.Array) -> jax.Array:
    return pt.tag(x * 2, "t")


def summed(x: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=0)


def helps(plan: pt.Plan, act: Callable[[pt.Plan], pt.Plan]) -> list[str]:
    with pytest.raises(pt.Error) as caught:
        plan.apply(act)
    return list(caught.value.helps)


def announced(text: str) -> str:
    found = re.search(r"receives (\S+ \S+) in a call", text)
    assert found is not None
    return found[1]


def is_padded(plan: pt.Plan, value: str, axis: str | tuple[str, ...]) -> bool:
    """Whether a tactic can pad dim 0 of the value."""
    try:
        return "pad" in plan.tile(value, 0, axis, padded=True).layout(value)[value]
    except pt.Error:
        return False


PAIR = ("tile(['a', 'b'], 0, 'y')", "tile(['a', 'b'], 2, 'x')")
ONE = ("tile('c', 1, 'x')", "tile('c', 1, 'y')")


@pytest.mark.parametrize(("first", "then"), [(PAIR, ONE), (ONE, PAIR)])
def test_two_orders_that_are_both_refused_have_a_way_that_is_not(first: tuple[str, ...], then: tuple[str, ...]) -> None:
    mesh = pt.Mesh(x=4, y=2)
    earlier = pt.replay(added, mesh, "\n".join(first), CUBE, CUBE, CUBE)
    (way,) = helps(earlier, lambda plan: pt.replay(added, mesh, "\n".join([plan.trace, then[0]]), CUBE, CUBE, CUBE))
    said = re.match(r"apply plan\.(.*) before tactic (\d) \(", way)
    assert said is not None
    lines = [*first[: int(said[2]) - 1], said[1], *first[int(said[2]) - 1 :], then[0]]
    plan = pt.replay(added, mesh, "\n".join(lines), CUBE, CUBE, CUBE)
    assert of_bytes(plan.bytes_per_device()) == announced(way) and plan.check(CUBE, CUBE, CUBE) == 0


def test_another_order_is_offered_where_it_is_not_refused() -> None:
    plan = pt.plan(chain, pt.Mesh(data=4, model=2), *ARGS)
    found = helps(plan.tile("w1", 0, "data"), lambda plan: plan.apply(pt.DataParallel("data", inputs="x")))
    way = next(each for each in found if each.startswith("apply this tactic before tactic 1 (tile('w1', 0, 'data'))"))
    first = plan.apply(pt.DataParallel("data", inputs="x")).tile("w1", 0, "data").bytes_per_device()
    assert announced(way) == of_bytes(first)
    axis = next(each for each in found if each.startswith("use the axis `model` (2 devices)"))
    other = plan.tile("w1", 0, "data").tile("x", 0, "model").bytes_per_device()
    assert announced(axis) == of_bytes(other)
    assert (found.index(way) < found.index(axis)) == (first <= other)


def test_two_claims_on_one_argument_have_no_other_way_than_one_of_them() -> None:
    plan = pt.plan(chain, pt.Mesh(data=4), *ARGS).tile("x", 0, "data")
    only = "leave out this tactic or tactic 1: tile('x', 0, 'data'): `x` cannot have both"
    assert helps(plan, lambda plan: plan.tile("x", 1, "data")) == [only]
    assert helps(plan, lambda plan: plan.replicate("x", "data")) == [only]


@pytest.mark.parametrize("before", [(), (("x", 0, "model"),), (("x", 1, "model"),)])
@pytest.mark.parametrize("value", ["x", "t"])
@pytest.mark.parametrize("axis", ["data", "data.0:2", ("data", "model"), ("model", "data")])
@pytest.mark.parametrize("extent", [1, 3, 4, 10])
def test_padding_is_offered_where_it_is_possible(
    before: tuple[tuple[str, int, str], ...], value: str, axis: str | tuple[str, ...], extent: int
) -> None:
    plan = pt.plan(doubled, pt.Mesh(data=4, model=2), np.ones((extent, 8), np.float32))
    try:
        for each in before:
            plan = plan.tile(*each)
        plan.tile(value, 0, axis)
    except pt.Error as error:
        offered = "or have it padded: add padded=True to this tactic" in error.helps
        assert offered == is_padded(plan, value, axis)
        at_once = next((text for text in error.helps if text.startswith("place all axes of the dim at once")), None)
    else:
        return
    if at_once is not None:
        said = re.search(r"plan\.(tile\(.*\)), in place of", at_once)
        assert said is not None and "pad" in str(pt.replay(doubled, pt.Mesh(data=4, model=2), said[1], np.ones((extent, 8))))


def test_what_helps_is_tried_only_if_the_error_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[object]()
    monkeypatch.setattr("partita.compiler.advice.refused_claims.redone", tried.append)
    plan = pt.plan(chain, pt.Mesh(data=4), *ARGS).tile("w1", 0, "data")
    plan.apply(pt.or_else(lambda plan: plan.tile("x", 0, "data"), lambda plan: plan))
    assert not tried


# --- several axes, held, and what changes nothing -----------------------------------------------------------------------------


def test_several_axes_are_one_tactic_major_to_minor() -> None:
    plan = pt.plan(chain, pt.Mesh(data=4, model=2), *ARGS)
    for made in (plan.tile("x", 0, ("data", "model")), plan.apply(pt.Tile({"x": 0}, ("data", "model")))):
        assert made.layout("x") == {"x": "f32[data*model*32, 8]"} and len(made.actions) == 1
        assert made.layout() == plan.tile("x", 0, "data").tile("x", 0, "model").layout()
        again = pt.replay(chain, made.mesh, made.trace, *ARGS)
        assert again.trace == made.trace and again.layout() == made.layout()
    assert plan.tile("x", 0, ["model", "data"]).layout("x") == {"x": "f32[model*data*32, 8]"}
    assert plan.apply(pt.TileRange("x.0", ("data", "model"))).layout("x") == {"x": "f32[data*model*32, 8]"}
    assert plan.tile("x", 0, ("data.0:2", "model")).layout("x") == {"x": "f32[data.0:2*model*64, 8]"}
    for made in (plan.replicate("w1", ("data", "model")), plan.apply(pt.Replicate("w1", ("data", "model")))):
        free = made.tile("w1", 0, "data", propagate=False) if not made.actions else made
        assert free.tile("x", 1, "data").layout("w1") == {"w1": "f32[8, 16]"}


def test_a_dim_is_padded_for_all_axes_together_and_dealt_out_over_all() -> None:
    x = np.arange(62 * 8, dtype=np.float32).reshape(62, 8)
    plan = pt.plan(summed, pt.Mesh(data=4, model=2), x)
    padded = plan.tile("x", 0, ("data", "model"), padded=True)
    assert padded.layout("x") == {"x": "f32[data*model*8 pad 62, 8]"} and padded.check(x) < 1e-6
    dealt = pt.plan(doubled, pt.Mesh(data=4, model=2), x[:48]).tile("x", 0, ("data", "model"), block=2)
    assert "3*data*model*2" in str(dealt.ir()) and dealt.check(x[:48]) < 1e-6


def test_tile_takes_held_as_the_tactic_does() -> None:
    plan = pt.plan(chain, pt.Mesh(data=4, model=2), *ARGS)
    held = plan.tile("x", 0, "data", held=True)
    assert held.trace == "tile('x', 0, 'data', held=True)"
    assert held.layout() == plan.apply(pt.Tile({"x": 0}, "data", held=True)).layout() != plan.tile("x", 0, "data").layout()
    assert pt.replay(chain, plan.mesh, held.trace, *ARGS).layout() == held.layout()


def test_a_tactic_that_changes_nothing_is_kept_and_shown() -> None:
    plan = pt.plan(chain, pt.Mesh(data=4, model=2), *ARGS).tile("x", 0, "data")
    twice, on = plan.tile("x", 0, "data"), plan.tile("w1", 1, "model")
    assert twice.trace.splitlines() == ["tile('x', 0, 'data')"] * 2
    assert "2: tile('x', 0, 'data'), which changes nothing" in str(twice)
    assert "changes nothing" not in str(plan) + str(on)
    assert "tactic 2, tile('x', 0, 'data'), changes nothing" in str(twice.diff(plan))
    late = pt.plan(chain, plan.mesh, *ARGS).tile("x", 0, "data", propagate=False).tile("x", 0, "data")
    assert "changes nothing" not in str(late)


def test_one_element_cannot_be_padded() -> None:
    def plus(x: jax.Array) -> jax.Array:
        return x + 1

    plan = pt.plan(plus, pt.Mesh(a=4), np.ones((1, 16), np.float32))
    with pytest.raises(pt.Error, match="dim 0 has 1 element, which cannot be padded: one device of `a`") as raised:
        plan.tile("x", 0, "a", padded=True)
    assert "tile dim 1 (16) instead" in str(raised.value)


def test_an_axis_that_the_dim_is_on_already_is_no_cure() -> None:
    def doubled(w: jax.Array) -> jax.Array:
        return w * 2

    plan = pt.plan(doubled, pt.Mesh(data=4, model=2), np.ones((16, 8), np.float32)).tile("w", 0, "data")
    with pytest.raises(pt.Error) as caught:
        plan.tile("w", 1, "model").tile("w", 0, "model")
    assert not any("use the axis `data`" in help for help in caught.value.helps)
