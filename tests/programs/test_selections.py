"""Selections along a placed dim: each device selects from its block, and the best of all blocks are gathered."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax
from lowered import executions, interpreted, lowers_from_its_text

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(x=4, y=2)
X = np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32)
SELECTIONS: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda x: jnp.argmax(x, 1),
    "argmin": lambda x: jnp.argmin(x, 1),
    "argmax of columns": lambda x: jnp.argmax(x.T, 0),
    "positions in bytes": lambda x: lax.argmax(x, 1, jnp.uint8),
    "top_k": lambda x: lax.top_k(x, 3),
    "top_k of columns": lambda x: lax.top_k(x.T, 3, axis=0),
}
SPECIAL = np.array([np.nan, -np.inf, np.inf, 0.0, -0.0, 1.0, 2.0], np.float32)
NEGATIVE_NAN = -np.abs(SPECIAL[:1])


def tiled(function: Callable[..., Any], x: Any, axes: str = "x", mesh: pt.Mesh = MESH, padded: bool = False) -> Plan:
    plan = pt.plan(function, mesh, x)
    for axis in axes:
        plan = plan.tile("x", 1, axis, padded=padded)
    return plan


def agree(plan: Plan, function: Callable[..., Any], x: Any) -> None:
    """Every bit of the results is that of the unpartitioned function, compiled, as a graph, and interpreted."""
    wanted = jax.tree.leaves(jax.jit(function)(x))
    for found in (jax.tree.leaves(plan.compile()(x)), plan.lower("collective").run(x), interpreted(plan, (x,))):
        for one, other in zip(map(np.asarray, jax.tree.leaves(found)), map(np.asarray, wanted), strict=True):
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    lowers_from_its_text(plan)
    assert executions(plan.spmd())[0] == dict(plan.counts())


@pytest.mark.parametrize("axes", ["x", "y", "xy", "yx"])
@pytest.mark.parametrize("what", SELECTIONS)
def test_devices_select_from_their_blocks_and_then_from_these(what: str, axes: str):
    plan = tiled(SELECTIONS[what], X, axes)
    assert plan.counts()["all_gather"] == sum(plan.counts().values()) == 2 and not plan.blocked
    agree(plan, SELECTIONS[what], X)


@pytest.mark.parametrize("axes", ["x", "y", "xy", "yx"])
@pytest.mark.parametrize("what", SELECTIONS)
def test_devices_select_from_what_is_dealt_to_them_in_turn(what: str, axes: str):
    """Ties come out as in the unpartitioned op: the lists are sorted by their positions."""

    def beams(x: Any) -> Any:
        return SELECTIONS[what](x.reshape(6, -1))

    x = np.random.default_rng(1).choice([*SPECIAL, 3.0], (6, 4, 16)).astype(np.float32)
    plan = pt.plan(beams, MESH, x)
    for axis in axes:
        plan = plan.tile("x", 2, axis)
    assert plan.counts()["all_gather"] == sum(plan.counts().values()) == 2 and not plan.blocked
    agree(plan, beams, x)


def test_beams_of_a_tiled_vocabulary_gather_the_best_of_each_device():
    def beams(x: Any) -> Any:
        return lax.top_k(x.reshape(16, -1), 4)

    plan = pt.plan(beams, pt.Mesh(d=8), jax.ShapeDtypeStruct((16, 4, 1024), "float32")).tile("x", 2, "d")
    assert plan.bytes_per_device() == 7 * 16 * 4 * (4 + 4)


def test_of_a_few_elements_that_are_dealt_in_turn_a_device_selects_nothing():
    plan = pt.plan(lambda x: lax.top_k(x.reshape(-1), 4), pt.Mesh(d=8), jax.ShapeDtypeStruct((4, 16), "float32")).tile(
        "x", 1, "d"
    )
    (stop,) = plan.blocked
    assert stop.reason == "a device has no more of it than what the op selects"


def test_the_largest_of_a_vocabulary_costs_under_a_kilobyte():
    logits = jax.ShapeDtypeStruct((8, 8192), jnp.float32)
    plan = tiled(lambda x: jnp.argmax(x, 1), logits, "m", pt.Mesh(m=8))
    assert plan.bytes_per_device() == 8 * 7 * (4 + 4)
    (values, positions) = map(str, plan.collectives())
    assert (
        values.startswith("all_gather of `x` over m: 224 bytes, needed by `argmax`") and "best elements of each block" in values
    )
    assert positions.startswith("all_gather of `result` over m: 224 bytes, needed by `argmax`")
    assert "f32[8, 8] by all_gather over (m) 1@1 (the best elements of each block)" in plan.explain("x")


def test_the_tactic_that_placed_the_selection_causes_its_gathers():
    x, w = np.ones((8, 6), np.float32), np.ones((6, 64), np.float32)
    plan = pt.plan(lambda x, w: jnp.argmax(x @ w, 1), MESH, x, w).tile("w", 1, "x").tile("w", 0, "y").tile("result", 0, "x")
    folded, values, positions = plan.collectives()
    assert (folded.kind, values.kind, positions.kind) == ("all_reduce", "all_gather", "all_gather")
    assert values.causes == positions.causes == ((1, "tile('w', 1, 'x')"),)
    assert plan.layout("result") == {"result": "i32[x*2]"} and "loses" not in plan.explain("result")


def test_an_unplaced_selection_is_the_primitive():
    (text,) = [line for line in str(pt.plan(SELECTIONS["argmax"], MESH, X).spmd()).splitlines() if "argmax" in line]
    assert "lax.argmax %0 {axes = (1,)" in text
    assert "lax.gather" not in str(pt.plan(SELECTIONS["top_k"], MESH, X).spmd())


def test_rows_stay_tiled_beside_a_selection():
    plan = tiled(SELECTIONS["top_k"], X, "x").tile("x", 0, "y")
    assert plan.layout("result/**") == {"result/0": "f32[y*3, 3]", "result/1": "i32[y*3, 3]"}
    assert plan.bytes_per_device() == 2 * 3 * (3 * 3 * 4)
    agree(plan, SELECTIONS["top_k"], X)


def test_positions_that_nothing_reads_are_not_sent():
    def threshold(x: Any) -> Any:
        return jnp.where(x < lax.top_k(x, 4)[0][:, -1:], -jnp.inf, x)

    plan = tiled(threshold, X)
    assert plan.layout("result") == {"result": "f32[6, x*16]"}
    assert plan.bytes_per_device() == 6 * (4 * 3 * 4)
    agree(plan, threshold, X)


def test_blocks_that_are_no_larger_than_what_is_selected_are_gathered():
    def best(x: Any) -> Any:
        return lax.top_k(x, 10)

    plan = tiled(best, X)
    assert plan.bytes_per_device() == 6 * 16 * 3 * 4
    (stop,) = plan.blocked
    assert stop.reason == "its blocks of 16 are no larger than what the op selects of each"
    agree(plan, best, X)


def test_a_selection_in_a_loop_and_in_a_branch():
    def decode(x: Any) -> Any:
        def step(scores: Any, _: Any) -> Any:
            token = jnp.argmax(scores, axis=1)
            return jnp.sin(scores + token[:, None]), token

        last, tokens = lax.scan(step, x, length=3)
        return tokens, lax.cond(tokens.sum() > 0, lambda: jnp.argmin(last, 1), lambda: tokens[0])

    plan = tiled(decode, X)
    assert plan.counts()["all_gather"] == 6
    assert plan.counts().in_branches == {"all_gather": 2}
    for one, other in zip(plan.compile()(X), jax.jit(decode)(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_gradient_of_the_largest_elements_scatters_into_blocks():
    def loss(x: Any) -> Any:
        return (lax.top_k(jnp.sin(x), 3)[0] ** 2).sum()

    plan = tiled(jax.grad(loss), X)
    assert plan.layout("result") == {"result": "f32[6, x*16]"}
    assert plan.counts()["all_gather"] == sum(plan.counts().values()) == 2
    np.testing.assert_allclose(plan.compile()(X), jax.grad(loss)(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(tiled(loss, X).compile())(X), jax.grad(loss)(X), rtol=1e-6)


def test_padding_never_wins():
    """Not against minus infinity, nor against a NaN that comes after it in the order of bits."""
    for value in (-np.inf, np.inf, *NEGATIVE_NAN):
        x = np.full((2, 37), value, np.float32)
        for what in ("argmax", "argmin", "top_k"):
            agree(tiled(SELECTIONS[what], x, padded=True), SELECTIONS[what], x)


DTYPES = ["float32", "bfloat16", "bool", "int8", "uint8", "int32"]


@settings(max_examples=12)
@given(data=st.data())
def test_ties_and_nan_are_those_of_the_whole_op(data: st.DataObject):
    size = data.draw(st.sampled_from([2, 3, 5, 7]))
    extent, k = data.draw(st.integers(size, 40)), data.draw(st.integers(1, 4))
    mesh, dtype = pt.Mesh(x=size), data.draw(st.sampled_from(DTYPES))
    pool = np.concatenate([SPECIAL, NEGATIVE_NAN]) if "float" in dtype else np.arange(-2, 2)
    values = data.draw(st.lists(st.sampled_from(list(pool)), min_size=extent, max_size=extent))
    x = jnp.asarray(np.stack([values, values[::-1]])).astype(dtype)

    def best(x: Any) -> Any:
        return lax.argmax(x, 1, jnp.int32), lax.argmin(x, 1, jnp.int32), lax.top_k(x, min(k, extent))

    agree(tiled(best, x, mesh=mesh, padded=True), best, x)
