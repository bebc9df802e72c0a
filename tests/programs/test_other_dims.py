"""A tactic asks for a value on another dim than its op leaves it: the value is redistributed, and the plan says so."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(x=4, y=2)
A, B = jnp.arange(128.0).reshape(16, 8) / 64, jnp.sin(jnp.arange(64.0)).reshape(8, 8)


def layer(a: Any, b: Any) -> Any:
    h = pt.tag(jnp.tanh(a @ b), "h")
    return h * 2 + 1, h @ b


def agrees(plan: Plan, *args: Any) -> None:
    """The compiled plan, its graph, and its gradient are those of the function."""
    wanted = layer(*args)
    for run in (plan.compile(), plan.lower("collective").run):
        for ours, theirs in zip(run(*args), wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)

    def loss(f: Any) -> Any:
        return jax.grad(lambda *args: sum(jnp.sum(each**2) for each in f(*args)), argnums=(0, 1))(*args)

    for ours, theirs in zip(loss(plan.compile()), loss(layer), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_result_is_asked_for_on_another_dim():
    plan = pt.plan(layer, MESH, A, B).tile("a", 0, "x").tile("result/1", 1, "x")
    assert plan.layout("result/*") == {"result/0": "f32[x*4, 8]", "result/1": "f32[16, x*2]"}
    assert plan.counts()["all_to_all"] == 1
    (collective,) = plan.collectives()
    assert "tile('result/1', 1, 'x')" in str(collective)
    agrees(plan, A, B)


def test_a_value_between_is_asked_for_on_another_dim():
    plan = pt.plan(layer, MESH, A, B).tile("a", 0, "x").tile("h", 1, "x")
    assert plan.layout("h") == {"h": "f32[16, x*2]"}
    assert plan.counts()["all_to_all"] > 0
    agrees(plan, A, B)


def test_two_axes_of_one_value_change_places():
    plan = pt.plan(lambda a: pt.tag(a * 2, "h"), MESH, A).tile("a", 0, "x").tile("a", 1, "y")
    assert plan.layout("result") == {"result": "f32[x*4, y*4]"}
    plan = plan.tile("result", 1, "x").tile("result", 0, "y")
    assert plan.layout("result") == {"result": "f32[y*8, x*2]"}
    np.testing.assert_array_equal(plan.compile()(A), A * 2)


@dataclass(frozen=True, repr=False)
class Transposed(pt.Tactic):
    """A layout of the result in which the two axes have changed places."""

    def seeds(self, plan: Plan) -> Iterator[Any]:
        yield from pt.Tile({"result": 0}, "y").seeds(plan)
        yield from pt.Tile({"result": 1}, "x").seeds(plan)


def test_the_axes_of_one_tactic_change_places_at_once():
    """One after the other there is no room: both dims are full."""
    x = A[:4, :4]
    plan = pt.plan(lambda x: x * 2, MESH, x).tile("x", 0, "x").tile("x", 1, "y")
    assert plan.layout("result") == {"result": "f32[x, y*2]"}
    with pytest.raises(pt.Error, match="do not divide"):
        plan.tile("result", 0, "y")
    plan = plan.apply(Transposed())
    assert plan.layout("result") == {"result": "f32[y*2, x]"}
    np.testing.assert_array_equal(plan.compile()(x), x * 2)


def test_it_is_told_by_the_trace():
    plan = pt.plan(layer, MESH, A, B).tile("a", 0, "x").tile("result/0", 1, "x")
    again = pt.replay(layer, MESH, plan.trace, A, B)
    assert again.layout("**") == plan.layout("**")
    assert str(again.spmd()) == str(plan.spmd())


def test_an_argument_stays_where_a_tactic_put_it():
    with pytest.raises(pt.Error, match="axis `x` is already on its dim 0"):
        pt.plan(layer, MESH, A, B).tile("a", 0, "x").tile("a", 1, "x")


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "h", "result/0", "result/1"]), st.integers(0, 1), st.sampled_from("xy"))))
def test_any_order_of_tiles_gives_the_same_numbers(tiles: list[tuple[str, int, str]]):
    plan = pt.plan(layer, MESH, A, B)
    for tile in tiles:
        try:
            plan = plan.tile(*tile)
        except pt.Error:
            continue
    for ours, theirs in zip(plan.compile()(A, B), layer(A, B), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
