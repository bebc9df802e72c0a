"""Strided layouts: blocks that go to the devices in turn, asked for by a tactic, or made by reshapes that merge dims."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings, strategies as st

import partita as pt
from tests.support.everywhere import agrees

MESH = pt.Mesh(d=4, m=2)
X, W = jnp.sin(jnp.arange(512.0)).reshape(64, 8), jnp.cos(jnp.arange(128.0)).reshape(8, 16)


def layer(x: Any, w: Any) -> Any:
    y = jnp.tanh(x @ w)
    return y, y.sum(0), x.max(0)


@pytest.mark.parametrize(("block", "inside"), [(1, "f32[16*d, 8]"), (2, "f32[8*d*2, 8]"), (16, "f32[d*16, 8]")])
def test_blocks_go_to_the_devices_in_turn(block: int, inside: str) -> None:
    """One block on each device at the boundary: an exchange of three quarters of what a device has, at either end."""
    plan = pt.plan(layer, MESH, X, W).tile("x", 0, "d", block=block)
    assert f"x: {inside}" in plan.explain("x")
    assert plan.layout(["x", "result/0"]) == {"x": "f32[d*16, 8]", "result/0": "f32[d*16, 16]"}
    assert plan.counts()["all_to_all"] == (0 if block == 16 else 2)
    assert plan.counts()["all_gather"] == 0
    exchanged = sum(each.bytes for each in plan.collectives() if each.kind == "all_to_all")
    assert exchanged == (0 if block == 16 else 3 * (16 * 8 + 16 * 16))
    agrees(plan, layer, X, W, derived=True)


@settings(max_examples=6)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([0, 1]), st.sampled_from(["d", "m", "d.0:2", "d.1:2"]))
def test_blocks_in_turn_with_another_axis_beside_them(block: int, dim: int, axis: str) -> None:
    plan = pt.plan(layer, MESH, X, W)
    if block * plan.mesh.having(axis)[axis] > X.shape[dim]:
        return
    plan = plan.tile("x", dim, axis, block=block)
    agrees(plan.tile("x", 1 - dim, "d" if axis == "m" else "m"), layer, X, W)


def test_a_value_inside_is_dealt_out_where_it_is_computed() -> None:
    def fn(x: Any) -> Any:
        return pt.tag(jnp.tanh(x), "h") * 2

    plan = pt.plan(fn, MESH, X).tile("x", 0, "d").tile("h", 0, "d", block=2)
    assert "h: f32[8*d*2, 8]" in plan.explain("h")
    assert plan.counts()["all_to_all"] == 2
    agrees(plan, fn, X)


def test_a_fused_projection_is_strided_over_heads() -> None:
    """The columns of queries, keys and values of one head lie apart: `3*d*6`, without a collective inside.

    At the boundary the weight becomes blocks of columns in two permutes of what devices lack.
    """

    def attend(x: Any, w: Any) -> Any:
        q, k, v = jnp.moveaxis((x @ w).reshape(8, 3, 4, 6), 1, 0)
        return (jnp.exp(jnp.einsum("ihc,jhc->hij", q, k) / 9) @ jnp.swapaxes(v, 0, 1)).transpose(1, 0, 2)

    x, w = X[:8], jnp.cos(jnp.arange(576.0)).reshape(8, 72)
    plan = pt.plan(attend, MESH, x, w).tile("result", 1, "d")
    assert "w: f32[8, 3*d*6]" in plan.explain("w")
    assert {kind: n for kind, n in plan.counts().items() if n} == {"permute": 2} and plan.bytes_per_device() == 384
    asked = pt.plan(attend, MESH, x, w).tile("w", 1, "d", block=6)
    assert (asked.layout(), asked.counts()) == (plan.layout(), plan.counts())
    agrees(plan, attend, x, w)


def test_a_fused_projection_in_parts_is_trained_in_place() -> None:
    """Queries, keys and values are slices of the columns, and their gradients a concatenation: both have their parts in turn.

    Only the weight, which is one block on each device for the caller, is sent: 3 parts of 16 columns, forward and back.
    """

    def loss(w: Any, x: Any) -> Any:
        q, k, v = (part.reshape(-1, 4, 4) for part in jnp.split(x @ w, 3, -1))
        return jnp.sum((jnp.tanh(jnp.einsum("ihc,jhc->hij", q, k)) @ jnp.swapaxes(v, 0, 1)) ** 2)

    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * jax.grad(loss)(w, x)

    x, w = X[:32], jnp.cos(jnp.arange(384.0)).reshape(8, 48) / 9
    plan = pt.plan(step, MESH, w, x).tile("w", 1, "d", block=4)
    assert {kind: n for kind, n in plan.counts().items() if n} == {"permute": 4}
    assert {each.value for each in plan.collectives()} == {"w", "result"}
    assert plan.bytes_per_device() < pt.plan(step, MESH, w, x).tile("w", 1, "d").bytes_per_device()
    agrees(plan, step, w, x)


ROUNDS = {
    "a concatenation": (lambda x: jnp.concatenate([jnp.sin(x), x * x, 3 * x]), 0),
    "a concatenation with another array": (lambda x: jnp.concatenate([jnp.ones((16, 8)), jnp.sin(x), jnp.zeros((32, 8))]), 0),
    "rounds before it": (lambda x: jnp.pad(jnp.sin(x), ((16, 0), (0, 0)), constant_values=2.0), 0),
    "rounds on either side": (lambda x: jnp.pad(jnp.sin(x), ((16, 32), (0, 0))), 0),
    "parts that change places": (lambda x: jnp.concatenate([x[16:], 2 * x[:16]]), 0),
}


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("axes", [{"d": 4}, {"d": 4, "m": None}])
def test_whole_rounds_are_moved_where_they_are(name: str, axes: dict[str, int | None]) -> None:
    """Of blocks of 4 in turn over 4 devices (or of 2 over 4 x 2), 16 rows are a round."""
    rounds, inside = ROUNDS[name]

    def fn(x: Any) -> Any:
        return jnp.sum(jnp.tanh(rounds(x)), 0)

    plan = pt.plan(fn, MESH, X)
    for axis, block in axes.items():
        plan = plan.tile("x", 0, axis, block=block)
    assert not plan.blocked
    assert sum(each.value != "x" and each.kind != "all_reduce" for each in plan.collectives()) == inside
    agrees(plan, fn, X, derived=True)


@pytest.mark.parametrize(
    ("block", "title", "cure"),
    [
        (3, "`x` cannot be tiled in blocks of 3: dim 0 has 64 elements", "take a block of 1 or 2 or 4"),
        (17, "`x` cannot be tiled in blocks of 17: dim 0 has 64 elements", "take a block of 4 or 8 or 16"),
        (0, "`block` takes the number of consecutive elements that go to one device, got 0", "block=1 deals the elements"),
        ("1", "`block` takes the number of consecutive elements that go to one device, got '1'", "block=1 deals the elements"),
    ],
)
def test_blocks_that_do_not_go_round(block: Any, title: str, cure: str) -> None:
    with pytest.raises(pt.Error) as error:
        pt.plan(layer, MESH, X, W).tile("x", 0, "d", block=block)
    assert title in str(error.value) and cure in str(error.value)


def test_blocks_in_turn_of_a_dim_that_is_placed_or_padded() -> None:
    plan = pt.plan(layer, MESH, X, W).tile("x", 0, "d")
    with pytest.raises(pt.Error, match="axis `d` is already on its dim 0"):
        plan.tile("x", 0, "d", block=2)
    with pytest.raises(pt.Error, match="cannot be padded and dealt out in blocks"):
        plan.tile("x", 0, "m", padded=True, block=2)
    with pytest.raises(pt.Error, match="which are no whole number of rounds of 2 such blocks beside `d"):
        plan.tile("x", 0, "m", block=16)
    plan = plan.tile("x", 0, "m", block=4)
    assert "x: f32[d*2*m*4, 8]" in plan.explain("x")
    assert pt.plan(layer, MESH, X, W).apply(pt.Tile({"x": 0}, "d", block=2)).trace == "Tile(values={'x': 0}, axis='d', block=2)"
