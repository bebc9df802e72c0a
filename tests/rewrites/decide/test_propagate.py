"""Propagation depends on the claims, not on the order in which they are visited; and a plan never changes."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from generated import MESHES, POOLS, Case, Program, cases, examples, programs
from generated_steps import Step
from hypothesis import given, strategies as st
from models import Transformer, train_step
from strategies import strategy

import partita as pt
from partita.compiler.api.plan import Plan
from partita.rewrites.decide.table import same

MESH = pt.Mesh(data=4, model=2)


@cache
def training() -> Plan:
    return pt.plan(train_step, MESH, *Transformer(layers=2).shapes())


def said(plan: Plan) -> tuple[Any, ...]:
    """The reports of a plan."""
    return plan.trace, plan.layout(), plan.counts(), plan.bytes_per_device(), str(plan.spmd())


def test_a_conflict_says_its_claims_in_the_order_of_the_program() -> None:
    """In sets they would lie as their hashes say, which differ by process."""

    def read_twice(x: jax.Array, u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = jnp.tanh(x)
        return y @ u, v @ y

    for extent in range(8, 72, 8):
        args = [jax.ShapeDtypeStruct((extent, extent), "float32")] * 3
        plan = pt.plan(read_twice, pt.Mesh(data=2), *args).apply(pt.Tile({"u": 0, "v": 1}, "data"))
        (conflict,) = plan.conflicts
        assert [claim.partition(",")[0] for claim in conflict.claims] == [
            "result 0 `tanh#0` on dim 1",
            "result 0 `tanh#0` on dim 0",
        ]


# The order of seeds.


def seeded(start: Plan, values: Sequence[str], dim: int, axis: str) -> Plan | None:
    """The plan after one tactic that tiles all of these; None if it is refused."""
    try:
        return start.tile(list(values), dim, axis)
    except pt.Error:
        return None


@examples(60)
@given(cases(grad=True), st.data())
def test_the_order_of_a_tactics_seeds_changes_nothing(case: Case, data: st.DataObject) -> None:
    start, axis = case.start, next(iter(case.start.mesh.axes))
    names = data.draw(st.lists(st.sampled_from([*start.arguments(), *start.source.addresses.by_op]), min_size=2, unique=True))
    ranked = [name for name in names if start.source.program.shape(start.source.addresses.find(name)[name])]
    plan = seeded(start, ranked, 0, axis) if ranked else None
    other = seeded(start, data.draw(st.permutations(ranked)), 0, axis) if ranked else None
    assert (plan is None) == (other is None)
    if plan is not None and other is not None:
        assert same(plan.table.axes, other.table.axes)
        assert plan.counts() == other.counts()
        assert str(plan.spmd()) == str(other.spmd())


def test_the_order_of_a_strategys_seeds_changes_nothing() -> None:
    start = training()
    names = [name for name in start.arguments() if name.startswith("batch") or "/w" in name]
    plans = [start.tile(each, 0, "data") for each in (names, names[::-1])]
    assert plans[0].counts() == plans[1].counts()
    assert plans[0].layout() == plans[1].layout()


# The order of independent equations.


@st.composite
def reordered(draw: st.DrawFn, program: Program) -> Program:
    """The same program with its steps in another order, each still after the steps that it reads."""
    first, waiting = len(program.shapes), list(range(len(program.steps)))
    number = {n: n for n in range(first)}
    made: list[Step] = []
    while waiting:
        ready = [n for n in waiting if all(operand in number for operand in program.steps[n].operands)]
        chosen = draw(st.sampled_from(ready))
        waiting.remove(chosen)
        step = program.steps[chosen]
        number[first + chosen] = first + len(made)
        made.append(replace(step, operands=tuple(number[operand] for operand in step.operands)))
    return replace(program, steps=tuple(made), results=tuple(number[result] for result in program.results))


@examples(60)
@given(st.data())
def test_the_order_of_independent_equations_changes_nothing(data: st.DataObject) -> None:
    program = data.draw(programs(grad=False, pool=data.draw(st.sampled_from(POOLS))))
    other = data.draw(reordered(program))
    mesh = data.draw(st.sampled_from(MESHES))
    tactics = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=5))
    one, two = (tiled(each, mesh, tactics) for each in (program, other))
    assert one.trace == two.trace
    assert one.layout(ends(one)) == two.layout(ends(two))
    assert one.counts() == two.counts()
    assert one.bytes_per_device() == two.bytes_per_device()


def tiled(program: Program, mesh: dict[str, int], tactics: list[tuple[int, int, int]]) -> Plan:
    """Tiles of arguments and results, whose names do not depend on the order of what is between them."""
    plan = pt.plan(program.function, pt.Mesh(**mesh), *program.arrays())
    names, axes = ends(plan), list(mesh)
    for value, dim, axis in tactics:
        try:
            plan = plan.tile(names[value % len(names)], dim, axes[axis % len(axes)])
        except pt.Error:
            continue
    return plan


def ends(plan: Plan) -> list[str]:
    """The arguments and results of a plan, without the constants, which have numbers in the order of the equations."""
    return [name for name in (*plan.arguments(), *plan.results()) if not name.startswith("const/")]


# What is held.


def test_a_held_claim_stops_where_not_every_array_has_its_range() -> None:
    # The rows of `x` are rows of the activation, but of no other operand of the product.
    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.numpy.tanh(x) @ w

    x, w = jax.ShapeDtypeStruct((8, 4), "float32"), jax.ShapeDtypeStruct((4, 4), "float32")
    plan = pt.plan(layer, MESH, x, w).apply(pt.Tile({"x": 0}, "data", held=True))
    assert plan.layout(["x", "tanh#0", "dot_general#0"]) == {
        "x": "f32[data*2, 4]",
        "tanh#0": "f32[data*2, 4]",
        "dot_general#0": "f32[8, 4]",
    }
    columns = plan.tile("w", 1, "data")
    assert columns.layout("result") == {"result": "f32[8, data]"}
    assert columns.counts()["all_gather"] == 1


# Plans do not change.


@examples(30)
@given(cases())
def test_a_plan_is_as_it_was_after_any_tactic_on_it(case: Case) -> None:
    plan = case.start
    for tactic in case.tactics:
        before = said(plan)
        after = tactic.apply(plan)
        assert said(plan) == before
        plan = after


REFUSED: dict[str, Callable[[Plan], Plan]] = {
    "unknown axis": lambda plan: plan.tile("params/embed", 0, "modle"),
    "no such dim": lambda plan: plan.tile("params/embed", 5, "model"),
    "no such value": lambda plan: plan.tile("parms/embed", 0, "model"),
    "one of two does not divide": lambda plan: plan.tile(["opt/m/embed", "params/blocks/0/wqkv"], 1, "model"),
    "on another dim": lambda plan: plan.tile("batch/x", 1, "data"),
    "placed already": lambda plan: plan.replicate("batch/x", "data"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_a_refused_tactic_leaves_the_plan_as_it_was(refused: str) -> None:
    plan = training().apply(*strategy("BP+MP"))
    before = said(plan)
    with pytest.raises(pt.Error):
        REFUSED[refused](plan)
    assert said(plan) == before
    assert said(training().apply(*strategy("BP+MP"))) == before


def test_plans_from_one_start_share_nothing_that_changes() -> None:
    start = training()
    before = said(start)
    plans = [start.apply(*strategy(name)) for name in ("BP", "MP", "BP+MP+Z3")]
    assert said(start) == before
    assert len({str(plan.spmd()) for plan in plans}) == 3
    assert len(jax.tree.leaves([plan.counts() for plan in plans])) == 15
