"""What widening costs: a plan compares the bytes and the flops of both ways."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=8)
IMAGE, KERNEL = np.ones((1, 64, 32, 4), np.float32), np.ones((3, 3, 4, 4), np.float32)
ONE_ROW = 32 * 4 * 2 * (3 * 3 * 4)
"""The flops of one row of a convolution."""


def conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def two_convs(x: Any, w: Any) -> Any:
    return conv(pt.tag(conv(x, w), "h"), w)


def both(function: Any, names: Any, *args: Any) -> tuple[Plan, Plan]:
    """The plan that exchanges, and the plan that widens."""
    plan = pt.plan(function, MESH, *args)
    tile = pt.Tile({plan.arguments()[0]: 1 if np.ndim(args[0]) > 1 else 0}, "data")
    return plan.apply(tile), plan.apply(pt.Widen(names), tile)


def test_a_comparison_shows_bytes_and_flops_of_both_ways() -> None:
    rows, wide = both(two_convs, "h", IMAGE, KERNEL)
    diff = wide.diff(rows)
    assert [each.known for each in diff.flops] == [(8 + 8) * ONE_ROW, (10 + 8) * ONE_ROW]
    assert diff.bytes == (rows.bytes_per_device(), wide.bytes_per_device())
    assert f"flops of a device: {16 * ONE_ROW:,} --> {18 * ONE_ROW:,}" in str(diff)


def test_explain_shows_what_the_rim_of_a_value_costs() -> None:
    rows, wide = both(two_convs, "h", IMAGE, KERNEL)
    assert "computed in windows" not in rows.explain("h")
    assert f"{10 * ONE_ROW:,} flops on a device instead of {8 * ONE_ROW:,} flops" in wide.explain("h")


def test_what_runs_backwards_over_padding_is_explained_too() -> None:
    """No block is read backwards as a block: without its window the op could not run at all."""
    plan = pt.plan(lambda x: jnp.flip(jnp.flip(x)) + x, pt.Mesh(data=3), np.ones(8, np.float32)).tile(
        "x", 0, "data", padded=True
    )
    assert plan.layout("rev#0") == {"rev#0": "f32[win<-3,3,1,-5>(data) of 8]"}
    assert "rim" not in str(plan.explain("rev#0")) and plan.silent().flops == 0


def test_each_step_of_a_stencil_computes_less_of_the_rim() -> None:
    def stencil(u: Any) -> Any:
        for step in range(8):
            padded = jnp.pad(u, 1)
            u = pt.tag(u + 0.1 * (padded[2:] - 2 * u + padded[:-2]), f"u{step}")
        return u

    points, wide = both(stencil, [f"u{step}" for step in range(7)], np.ones(512, np.float32))
    # A step has five operations of a point. The first of eight computes seven points beyond either end.
    assert points.flops_per_device().known == 8 * 5 * 64
    assert wide.flops_per_device().known == sum(5 * (64 + 2 * rim) for rim in range(8))


def test_the_gradient_of_a_widened_program_is_compared_too() -> None:
    def loss(x: Any, w: Any) -> Any:
        return jax.grad(lambda w: (two_convs(x, w) ** 2).sum())(w)

    rows, wide = both(loss, "h", IMAGE, KERNEL)
    before, after = wide.diff(rows).flops
    assert 0 < before.known < after.known < 2 * before.known and not after.unknown


def test_the_flops_of_a_loop_are_those_of_all_its_trips_and_of_a_branch_those_of_the_dearest() -> None:
    def looped(x: Any) -> Any:
        return lax.scan(lambda c, _: (lax.scan(lambda c, _: (c + 1.0, None), c, None, length=3)[0], None), x, None, length=5)[0]

    def branched(x: Any, which: Any) -> Any:
        return lax.switch(which, [lambda x: x + 1.0, lambda x: (x + 1.0) * 2.0], x)

    x = np.ones((64, 8), np.float32)
    tiled = pt.plan(looped, MESH, x).tile("x", 0, "data")
    assert tiled.flops_per_device().known == 5 * 3 * 8 * 8
    whole = pt.plan(branched, MESH, x, 0).flops_per_device().known
    assert pt.plan(branched, MESH, x, 0).tile("x", 0, "data").flops_per_device().known == whole - 7 * 2 * 64


def test_what_lies_in_micro_batches_is_computed_in_each_of_them_by_all_devices_of_an_axis() -> None:
    def layers(x: Any, ws: Any) -> Any:
        return lax.scan(lambda h, w: (h @ (w @ w), None), x, ws)[0]

    plan = pt.plan(layers, pt.Mesh(a=2), np.ones((16, 8), np.float32), np.ones((3, 8, 8), np.float32))
    plan = plan.tile("x", 0, "t:4").tile("x", 1, "a", propagate=False)
    in_all = {each.value: each.flops for each in plan.silent() if each.flops}
    assert in_all == {"dot_general#0": 4 * 3 * 2 * 8**3 // 2, "dot_general#1": 3 * 16 * 2 * 8 * 8 // 2}
    assert plan.counts()["all_gather"] == 4


def test_what_is_unknown_is_said() -> None:
    plan = pt.plan(lambda x: jnp.sort(x, axis=0) * 2, MESH, np.ones((64, 8), np.float32))
    diff = plan.tile("x", 1, "data").diff(plan)
    assert "flops of a device: 512, and those of `sort`, which are unknown --> 64, and those of `sort`" in str(diff)


def test_what_several_queries_need_is_computed_once_for_a_plan() -> None:
    plan = pt.plan(lambda x: x + 1, pt.Mesh(data=4), np.ones((8, 8), np.float32))
    asked: list[pt.Plan] = []

    def number(plan: pt.Plan) -> int:
        asked.append(plan)
        return len(asked)

    tiled = plan.tile("x", 0, "data")
    assert [plan.once(number), plan.once(number), tiled.once(number), tiled.once(number)] == [1, 1, 2, 2]
    assert plan.flops_per_device() is plan.flops_per_device()
