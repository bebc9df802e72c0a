"""Conflicts of device sets: an op that no tactic puts anywhere, whose operands tactics put on several sets."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import re
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.advice.ways_out import tried_ways_out
from partita.compiler.api.plan import Plan
from partita.compiler.api.tactics import resolve
from partita.compiler.cost.costs import price
from partita.compiler.report.data import data
from partita.compiler.shell.run_line import do
from partita.compiler.shell.session import Session
from partita.compiler.shell.typed_line import Typed

RANDOM = np.random.default_rng(0)
X, V = (RANDOM.standard_normal((16, 16), np.float32) for _ in range(2))
W = RANDOM.standard_normal((16, 64), np.float32)


def diamond(w: Any, v: Any, x: Any) -> Any:
    """Two branches, of which one is the smaller, and a join that is in neither."""
    with jax.named_scope("left"):
        left = jnp.tanh(x @ v)
    with jax.named_scope("right"):
        right = jnp.tanh(x @ w)[:, :8]
    return jnp.concatenate([left, right], axis=1)


def trained(w: Any, v: Any, x: Any) -> Any:
    return jax.grad(lambda w, v: (diamond(w, v, x) ** 2).sum(), (0, 1))(w, v)


def planned(fn: Any = diamond, **mesh: Any) -> Plan:
    plan = pt.plan(fn, pt.Mesh(stage=2, data=2, **mesh), W, V, X).tile("x", 0, "data")
    return plan.on("left", stage=0).on("right", stage=1)


def test_a_join_of_two_sets_is_a_conflict_that_says_where_its_operands_are() -> None:
    plan = planned()
    (conflict,) = plan.conflicts
    said = repr(conflict)
    assert re.fullmatch(r"conflict on `stage` in `concatenate` at .*: (.*); (.*)", said)
    assert said.endswith("operand `left` is on stage=0 (1,024 bytes); operand `right` is on stage=1 (512 bytes)")
    assert (conflict.axis, conflict.tactics) == ("stage", (2, 3))
    assert conflict.left_open.endswith("It runs on stage=0, where the fewest bytes cross")


@pytest.mark.parametrize("fn", [diamond, trained])
def test_each_way_out_is_the_program_and_costs_what_it_says(fn: Any) -> None:
    plan = planned(fn)
    conflict = plan.conflicts[0]
    assert len(conflict.resolutions) == 2
    for number, way in enumerate(conflict.resolutions):
        made = plan.resolve(conflict, number)
        assert way.tactic == made.trace.splitlines()[-1]
        assert conflict.claims not in [each.claims for each in made.conflicts]
        assert way.crossing == sum(each.bytes for each in made.transfers())
        assert (way.price, way.memory) == (price(made), made.memory().bytes)
        assert pt.replay(fn, made.mesh.whole(), made.trace, W, V, X).lower().text() == made.lower().text()
        for one, other in zip(*(jax.tree.leaves(run(W, V, X)) for run in (made.lower().run, jax.jit(fn))), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_the_way_to_which_the_fewest_bytes_cross_is_the_first() -> None:
    first, second = planned().conflicts[0].resolutions
    assert (first.tactic, second.tactic) == ("on('concatenate#0', stage=0)", "on('concatenate#0', stage=1)")
    assert (first.crossing, second.crossing) == (512 + 256, 512 + 512)
    assert first.seconds < second.seconds
    assert str(first).startswith(f"{first.tactic}: 768 bytes then cross between device sets, a call takes ")


def test_what_crosses_takes_longer_over_a_slow_axis() -> None:
    fast, slow = planned(), planned(slow="stage")
    assert price(slow).seconds > 5 * price(fast).seconds
    along = pt.plan(diamond, pt.Mesh(pod=2, stage=2, slow="pod"), W, V, X)
    within = along.on("left", pod=0, stage=0).on("right", pod=0, stage=1)
    across = along.on("left", pod=0, stage=0).on("right", pod=1, stage=0)
    assert {each.axes for each in within.transfers()} == {("stage",)}
    assert {each.axes for each in across.transfers()} == {("pod",)}
    assert price(within).bytes == price(across).bytes
    assert price(within).seconds < price(across).seconds
    (conflict,) = across.conflicts
    assert conflict.axis == "pod, stage" and conflict.resolutions[0].tactic == "on('concatenate#0', pod=0, stage=0)"


def test_resolve_takes_the_cheapest_way_out_of_each() -> None:
    for plan in (planned(), planned(trained)):
        resolved = plan.apply(pt.Resolve())
        assert not resolved.conflicts
        assert price(resolved) <= price(plan)
        assert plan.trace in resolved.trace
    assert planned().apply(pt.Resolve()).trace.splitlines()[-1] == "on('concatenate#0', stage=0)"


def test_conflicts_that_are_alike_are_resolved_by_one_trial_of_their_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def layers(xs: Any) -> Any:
        with jax.named_scope("left"):
            left = [jnp.tanh(x) for x in xs]
        with jax.named_scope("right"):
            right = [jnp.sin(x[:, : 4 if number % 2 else 8]) for number, x in enumerate(xs)]
        return [jnp.concatenate(each, axis=1) for each in zip(left, right, strict=True)]

    tried = list[object]()

    def counted(plan: Any, keys: Any) -> Any:
        tried.extend(keys)
        return tried_ways_out(plan, keys)

    monkeypatch.setattr(resolve, "tried_ways_out", counted)
    plan = pt.plan(layers, pt.Mesh(stage=2, data=2), [X] * 12).on("left", stage=0).on("right", stage=1)
    resolved = plan.apply(pt.Resolve())
    assert (len(plan.conflicts), len(resolved.conflicts), len(tried)) == (12, 0, 2)
    one_by_one = plan
    while one_by_one.conflicts:
        one_by_one = one_by_one.resolve(one_by_one.conflicts[0])
    assert price(resolved) == price(one_by_one)
    assert {*resolved.trace.splitlines()} == {*one_by_one.trace.splitlines()}


def test_a_plan_that_says_where_each_op_runs_has_none() -> None:
    assert not planned().on("concatenate#0", stage=1).conflicts
    assert not planned().on("**", stage=1).conflicts


def test_operands_that_no_tactic_puts_anywhere_are_in_no_conflict() -> None:
    def shared(x: Any, y: Any) -> Any:
        with jax.named_scope("left"):
            left = x * 2
        with jax.named_scope("right"):
            right = (jnp.tanh(y) + jnp.sin(y)) @ x
        return left + y, right

    plan = pt.plan(shared, pt.Mesh(stage=2), X, V).on("left", stage=0).on("right", stage=1)
    assert any(each.use == "add" for each in plan.transfers())
    assert not plan.conflicts
    assert len(plan.on("y", stage=1).conflicts) == 1


def test_a_loop_and_a_choice_go_by_what_leaves_them() -> None:
    def looped(w: Any, v: Any, x: Any) -> Any:
        with jax.named_scope("left"):
            left = jnp.tanh(x @ v)
        with jax.named_scope("right"):
            right = jnp.sin(x @ v)
        last, _ = jax.lax.scan(lambda c, _: (jnp.tanh(c @ v + right), None), left, length=3)
        jax.debug.callback(lambda *_: None, left, right)
        return jax.lax.cond(last.sum() > 0, lambda: right * 2, lambda: right + left)

    plan = planned(looped)
    assert [each.op for each in plan.conflicts] == ["`scan`", "`cond`"]
    scan, cond = plan.conflicts
    assert {way.tactic for way in scan.resolutions} == {"on('leave#0', stage=0)", "on('leave#0', stage=1)"}
    made = plan.resolve(scan, "on('leave#0', stage=1)")
    made = made.resolve(made.conflicts[0], "on('join#0', stage=0)") if made.conflicts else made.on("join#0", stage=0)
    assert not made.conflicts and len(cond.resolutions) == 2
    np.testing.assert_allclose(made.lower().run(W, V, X), jax.jit(looped)(W, V, X), rtol=1e-5, atol=1e-5)


def test_nothing_is_computed_in_excess_so_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        planned().lower().compile()
    assert "conflict" not in repr(planned())


def test_a_plan_explains_a_conflict_and_the_op_that_has_it() -> None:
    plan = planned()
    (conflict,) = plan.conflicts
    first, *steps = plan.explain(conflict).steps
    assert first.text.startswith("conflict on `stage` in `concatenate` at ")
    assert [step.tactics for step in steps] == [(2,), (3,), (), (), ()]
    ways = [f"way out: {way!r}" for way in conflict.resolutions]
    assert [step.text for step in steps] == [*conflict.claims, conflict.left_open, *ways]
    said = f"a conflict on `stage`: {'; '.join(conflict.claims)}; plan.explain(plan.conflicts[0]) shows the ways out"
    assert said in plan.explain("result")
    assert "conflict" not in str(plan.resolve(conflict).explain("result"))
    assert f"help: the fastest way out: {conflict.resolutions[0]!r}; pt.Resolve() takes it" in str(plan)
    with pytest.raises(pt.Error, match="this is not an open conflict of this plan"):
        plan.resolve(conflict).explain(conflict)


def test_a_page_has_the_conflict_with_its_tactics_and_ways_out() -> None:
    plan = planned()
    (conflict,) = plan.conflicts
    page: Any = data(plan)
    texts, *_, last = page["texts"], *page["steps"]
    (found,) = last["open"]["conflicts"]
    claims = [*zip(conflict.claims, conflict.tactics, strict=True)]
    assert [(texts[claim], tactic) for claim, tactic in found["claims"]] == claims
    ways = [(way.tactic, way.bytes, way.memory) for way in conflict.resolutions]
    assert [(texts[way["tactic"]], way["bytes"], way["memory"]) for way in found["ways"]] == ways


def test_a_saved_plan_has_the_way_out(tmp_path: Path) -> None:
    plan = planned().apply(pt.Resolve())
    plan.save(tmp_path / "resolved.partita")
    assert pt.replay(diamond, tmp_path / "resolved.partita", W, V, X).trace == plan.trace


def test_a_session_finds_explains_and_resolves_it() -> None:
    session = Session.start(pt.plan(diamond, pt.Mesh(stage=2, data=2), W, V, X))

    def said(*lines: str) -> str:
        at, text = session, ""
        for line in lines:
            at, text = (answer := do(at, Typed(line))).session, answer.text
        return text

    lines = "on('left', stage=0)", "on('right', stage=1)"
    assert "conflict on `stage` in `concatenate`" in said(*lines) and "`conflicts 1` shows ways out" in said(*lines)
    listed = said(*lines, "conflicts 1").splitlines()
    assert listed[1].startswith("left open: ") and listed[2] == "ways out, `resolve 1 1` takes the first:"
    assert [line.partition(":")[0] for line in listed[3:]] == ["  1", "  2"] and "stage=1" in listed[4]
    assert "is on stage=0 (1,024 bytes)" in said(*lines, "explain conflict 1")
    assert "the conflict is resolved" in said(*lines, "resolve 1 2")
    assert "on('concatenate#0', stage=1)" in said(*lines, "resolve 1 2", "history")
    assert said(*lines, "resolve all", "conflicts") == "no open conflicts"


def test_where_the_op_runs_now_is_a_way_out_and_so_is_each_of_many_sets() -> None:
    def f(x: Any, u: Any) -> Any:
        with jax.named_scope("a"):
            a = jnp.tanh(x)
        with jax.named_scope("b"):
            b = jnp.sin(x)
        rest = jnp.tanh(u)
        with jax.named_scope("c"):
            c = jnp.cos(u) * u
        return jnp.concatenate([a, b, rest], axis=1), c

    x, u = np.ones((16, 16), np.float32), np.ones((16, 256), np.float32)
    plan = pt.plan(f, pt.Mesh(stage=4, data=2), x, u).apply(pt.On({"a": 0, "b": 1, "c": 2}, "stage"))
    (conflict,) = plan.conflicts
    assert [each.where for each in conflict.resolutions] == [(("stage", 2),), (("stage", 0),), (("stage", 1),)]
    assert not plan.apply(pt.Resolve()).conflicts

    def many(x: Any) -> Any:
        branches = list[Any]()
        for number in range(8):
            with jax.named_scope(f"branch{number}"):
                branches.append(jnp.tanh(x + number))
        return jnp.concatenate(branches, axis=1)

    plan = pt.plan(many, pt.Mesh(stage=8), x).apply(pt.On({f"branch{at}": at for at in range(8)}, "stage"))
    assert len(plan.conflicts[0].resolutions) == 8


def test_a_conflict_of_sets_along_two_axes_names_both() -> None:
    plan = pt.plan(diamond, pt.Mesh(pod=2, stage=2, data=2), W, V, X).on("left", pod=0, stage=0).on("right", pod=1, stage=0)
    (conflict,) = plan.conflicts
    assert {conflict.axis, *(each.axis for each in conflict.resolutions)} == {"pod, stage"}
