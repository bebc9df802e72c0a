"""The table of tactics and their outcomes, one row per test."""

import jax
import jax.numpy as jnp
import pytest
from models import chain, gram

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
X, W1, W2 = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((256, 8), (8, 16), (16, 8)))


@pytest.fixture
def plan() -> Plan:
    return pt.plan(chain, MESH, X, W1, W2)


def same(left: Plan, right: Plan) -> bool:
    return left.layout() == right.layout() and left.counts() == right.counts()


def test_the_same_dim_and_axis_again_changes_nothing_and_is_kept_in_the_trace(plan: Plan) -> None:
    once = plan.tile("x", 0, "data")
    again = once.tile("x", 0, "data")
    assert same(again, once)
    assert again.trace == once.trace + "\ntile('x', 0, 'data')"


def test_an_inferred_dim_may_be_tiled_explicitly(plan: Plan) -> None:
    tiled = plan.tile("w1", 1, "model")
    assert tiled.layout("w2") == {"w2": "f32[model*8, 8]"}
    assert same(tiled.tile("w2", 0, "model"), tiled)


def test_an_axis_on_another_dim_of_the_value_is_an_error(plan: Plan) -> None:
    tiled = plan.tile("x", 0, "data")
    with pytest.raises(pt.Error, match="axis `data` is already on its dim 0"):
        tiled.tile("x", 1, "data")
    assert tiled.trace == "tile('x', 0, 'data')"


def test_where_an_op_uses_the_axis_already_the_later_claim_loses_and_explain_says_so(plan: Plan) -> None:
    batch_first = plan.tile("x", 0, "data").tile("w1", 0, "data")
    assert batch_first.counts()["all_gather"] == 1
    said = batch_first.explain("w1")
    assert "already uses `data` by 1: tile('x', 0, 'data'), which was earlier than 2: tile('w1', 0, 'data')" in said


def test_several_tilings_within_one_tactic_are_a_conflict_with_its_ways_out() -> None:
    plan = pt.plan(gram, MESH, X).tile("x", 0, "data")
    (conflict,) = plan.conflicts
    assert conflict.op == "`dot_general`"
    assert conflict.axis == "data"
    assert conflict.source is not None and conflict.source.file.endswith("models.py")
    assert all("tile('x', 0, 'data')" in claim for claim in conflict.claims)
    (way,) = conflict.resolutions
    taken = plan.replicate("transpose#0", "data")
    assert way.tactic == "replicate('transpose#0', 'data')"
    assert way.bytes == taken.bytes_per_device()
    assert taken.counts()["all_gather"] == 1 and not taken.conflicts


def test_a_tile_that_does_not_divide_is_refused_with_the_whole_tactic() -> None:
    odd = pt.plan(chain, pt.Mesh(data=16, model=2), X, W1, W2)
    with pytest.raises(pt.Error, match="dim 1 has 8 elements, which do not divide over `data`"):
        odd.tile("x", 1, "data")
    with pytest.raises(pt.Error, match="`x` cannot be tiled"):
        odd.apply(pt.Tile({"w1": 1, "x": 1}, "data"))
    assert odd.trace == "" and odd.layout("w1") == {"w1": "f32[8, 16]"}


def test_propagation_stops_where_an_extent_does_not_divide_and_lists_it() -> None:
    def fold(x: jax.Array) -> jax.Array:
        return x.reshape(2, 4, 8) * 2

    plan = pt.plan(fold, MESH, jax.ShapeDtypeStruct((8, 8), jnp.float32)).tile("x", 0, "data")
    (stop,) = plan.blocked
    assert (stop.op, stop.axis, stop.extent, stop.size) == ("reshape", "data", 8, 4)
    assert plan.counts()["all_gather"] == 1
