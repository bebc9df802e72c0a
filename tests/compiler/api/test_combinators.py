"""Tactics made of tactics: what they do, what their trace says, and that a replayed plan does not choose again."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import Transformer, chain, gram, train_step

import partita as pt

ARGS = [np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8))]
MESH = pt.Mesh(data=4, model=2)
ROWS, COLUMNS, REFUSED = pt.Tile({"x": 0}, "data"), pt.Tile({"w1": 1}, "model"), pt.FSDP("data", values="w1", smallest=10**6)
Step = Callable[[pt.Plan], pt.Plan]


def by_rows(plan: pt.Plan) -> pt.Plan:
    return plan.tile("x", 0, "data")


def by_columns(plan: pt.Plan) -> pt.Plan:
    return plan.tile("**", 1, "model")


def cheap(plan: pt.Plan) -> pt.Plan:
    return plan.expect(bytes_per_device=0)


@pytest.fixture
def plan() -> pt.Plan:
    return pt.plan(chain, MESH, *ARGS)


@pytest.mark.parametrize(
    ("tactic", "trace"),
    [
        (pt.then(ROWS, COLUMNS), ["Tile(values={'x': 0}, axis='data')", "Tile(values={'w1': 1}, axis='model')"]),
        (ROWS.then(COLUMNS, by_rows), [*map(repr, (ROWS, COLUMNS)), "tile('x', 0, 'data')"]),
        (pt.or_else(REFUSED, by_rows), ["tile('x', 0, 'data')"]),
        (REFUSED.or_else(COLUMNS.then(cheap), ROWS), ["Tile(values={'x': 0}, axis='data')"]),
        (pt.repeat(by_rows), ["tile('x', 0, 'data')"]),
        (pt.repeat(pt.then(ROWS, COLUMNS)), [repr(ROWS), repr(COLUMNS)]),
        (COLUMNS.repeat(), [repr(COLUMNS)]),
        (pt.at("x", pt.Tile({"**": 0}, "data")), ["at('x', Tile(values={'**': 0}, axis='data'))"]),
        (pt.Tile({"**": -1}, "model").at(["w1"]), ["at(['w1'], Tile(values={'**': -1}, axis='model'))"]),
        (pt.at("w?", pt.at("w1", by_columns)), ["at('w?', at('w1', tile('**', 1, 'model')))"]),
    ],
)
def test_its_trace_is_the_lines_that_took_effect(plan: pt.Plan, tactic: Step, trace: list[str]) -> None:
    placed = plan.apply(tactic)
    assert placed.trace.splitlines() == trace
    again = pt.replay(chain, MESH, placed.trace, *ARGS)
    assert again.trace == placed.trace and again.layout() == placed.layout()


def test_at_leaves_other_values_to_propagation(plan: pt.Plan) -> None:
    everything = pt.Tile({"x": 1, "w1": 1}, "model")
    assert plan.apply(pt.at("w1", everything)).layout() == plan.apply(COLUMNS).layout()


def test_at_restricts_what_is_found_from_structure() -> None:
    plan = pt.plan(train_step, MESH, *Transformer(2).shapes()).apply(pt.at("params/blocks/0", pt.Megatron("model")))
    assert plan.counts()["all_reduce"] == 4
    assert plan.layout("params/blocks/?/w1") == {
        "params/blocks/0/w1": "f32[16, model*16]",
        "params/blocks/1/w1": "f32[16, 32]",
    }


def test_at_keeps_the_successors_of_its_values() -> None:
    zero = pt.ZeRO(2, "data", params="params/**/w1", optimizer="opt/**/w1")
    plan = pt.plan(train_step, MESH, *Transformer(1).shapes()).apply(pt.DataParallel("data"), pt.at(["params", "opt"], zero))
    assert plan.layout("result/0/blocks/0/w1") == {"result/0/blocks/0/w1": "f32[16, 32]"}
    assert plan.layout("result/1/m/blocks/0/w1") == {"result/1/m/blocks/0/w1": "f32[data*4, 32]"}


def test_at_does_not_rewrite(plan: pt.Plan) -> None:
    with pytest.raises(pt.Error, match="`at` keeps the program, and <lambda> rewrites it"):
        plan.apply(pt.at("x", lambda plan: plan.rewrite("reassociate")))


def test_a_part_that_is_refused_refuses_all(plan: pt.Plan) -> None:
    with pytest.raises(pt.Error, match="`FSDP` shards nothing"):
        plan.apply(pt.then(ROWS, REFUSED))
    assert not plan.actions


def test_repeat_ends_when_a_tactic_is_refused_later() -> None:
    """The second dim cannot be tiled on an axis that the first has."""

    def next_dim(plan: pt.Plan) -> pt.Plan:
        return plan.tile("w1", len(plan.actions), "data")

    plan = pt.plan(chain, MESH, *ARGS)
    assert plan.apply(pt.repeat(next_dim)).trace == "tile('w1', 0, 'data')"
    with pytest.raises(pt.Error, match="no value is named"):
        plan.apply(pt.repeat(lambda plan: plan.tile("nothing", 0, "data")))


def test_conflicts_can_be_resolved_one_by_one() -> None:
    plan = pt.plan(gram, MESH, np.ones((64, 16), np.float32)).tile("x", 0, "data")
    first = pt.repeat(lambda plan: plan.resolve(plan.conflicts[0]) if plan.conflicts else plan)
    assert not plan.apply(first).conflicts
    assert plan.apply(first).trace == plan.apply(pt.Resolve()).trace


def test_they_print_as_they_are_written() -> None:
    made = pt.or_else(pt.then(ROWS, by_rows), pt.repeat(pt.at("x", COLUMNS)))
    assert repr(made) == (
        "or_else(then(Tile(values={'x': 0}, axis='data'), by_rows), repeat(at('x', Tile(values={'w1': 1}, axis='model'))))"
    )


def test_what_is_stored_is_known_at_some_values_too() -> None:
    plan = pt.plan(train_step, MESH, *Transformer(1).shapes())
    within = plan.source.within("batch")
    assert within.replaced == plan.source.replaced == {plan.source.addresses.arguments[name] for name in plan.successors}
    assert plan.source.within("params").replaced == within.replaced


def test_what_the_program_says_of_some_values_is_taken_at_these() -> None:
    def step(w: jax.Array, b: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return w - jnp.sum(pt.constrain(x, "data, _") @ w), b * 2

    plan = pt.plan(step, MESH, *(np.ones(shape, np.float32) for shape in ((8, 16), (3,), (256, 8))))
    assert set(plan.successors) == {"w", "b"}
    assert plan.apply(pt.at("x", pt.Annotated())).layout("x") == {"x": "f32[data*64, 8]"}
