"""Gathers in the body of a scan start a trip ahead by price; they are as many, and results are equal on every platform."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from lowered import lowers_from_its_decisions, lowers_from_its_text, parse
from xdsl.dialects import test

import partita as pt
from partita.compiler.ops import bind, prefetch
from partita.compiler.plan import lowering
from partita.dialects import spmd
from partita.dialects.ground.amounts import of_bytes
from partita.dialects.lax import ScanOp
from partita.dialects.types import ArrayType
from partita.rewrites.decide.decide import Move
from partita.rewrites.plan_text import stages

WIDTH, LAYERS = 256, 5
KEY = jax.random.key(0)
ARGS = (
    {
        "up": jax.random.normal(KEY, (LAYERS, WIDTH, 2 * WIDTH)) / 16,
        "down": jax.random.normal(KEY, (LAYERS, 2 * WIDTH, WIDTH)) / 16,
    },
    jax.random.normal(KEY, (2048, WIDTH)),
)


def layer(x: Any, w: Any) -> tuple[Any, Any]:
    x = x + jnp.tanh(x @ w["up"]) @ w["down"]
    return x, x.mean(0)


def scanned(params: Any, x: Any) -> Any:
    x, means = lax.scan(layer, x, params)
    return (x * x).sum() + means.sum()


def recomputed(params: Any, x: Any) -> Any:
    return (lax.scan(jax.checkpoint(layer), x, params)[0] ** 2).sum()


def backwards(params: Any, x: Any) -> Any:
    return (lax.scan(layer, x, params, reverse=True)[0] ** 2).sum()


def cast(params: Any, x: Any) -> Any:
    def half(x: Any, w: Any) -> tuple[Any, None]:
        return layer(x, jax.tree.map(lambda each: each.astype(jnp.bfloat16).astype(each.dtype), w))[0], None

    return (lax.scan(half, x, params)[0] ** 2).sum()


def within(params: Any, x: Any) -> Any:
    """A scan of layers in each of three steps, of which the parameters are gathered in each trip."""

    def step(x: Any, _: None) -> tuple[Any, None]:
        return lax.scan(layer, x, params)[0] / 4, None

    return (lax.scan(step, x, None, length=3)[0] ** 2).sum()


def zero3(fn: Callable[..., Any], mesh: pt.Mesh) -> pt.Plan:
    tactics = pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params")
    return pt.plan(jax.value_and_grad(fn), mesh, *ARGS).apply(*tactics)


PLAN = zero3(scanned, pt.Mesh(data=8))


def a_trip_ahead(plan: pt.Plan) -> list[Move]:
    return [move for move in plan.decisions.moves if move.trip_ahead is not None]


@pytest.mark.parametrize("fn", [scanned, recomputed, backwards, cast, within])
def test_what_a_trip_gathers_for_the_next_is_what_that_would_gather(
    fn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU or a TPU, and as on a CPU, which gathers in the same trip."""
    plan = zero3(fn, pt.Mesh(data=8))
    assert a_trip_ahead(plan)
    plain, written = plan.compile()(*ARGS), plan.compile().lower(*ARGS).as_text().count("all_gather")
    monkeypatch.setattr(bind, "platform", lambda: "gpu")
    ahead = zero3(fn, pt.Mesh(data=8)).compile()
    assert ahead.lower(*ARGS).as_text().count("all_gather") > written
    for one, other, whole in zip(*map(jax.tree.leaves, (ahead(*ARGS), plain, jax.value_and_grad(fn)(*ARGS))), strict=True):
        np.testing.assert_array_equal(one, other)
        # Gradients in bfloat16 are rounded on each device.
        apart = (5e-3 if fn is cast else 2e-4) * float(jnp.abs(whole).max())
        np.testing.assert_allclose(one, whole, rtol=0, atol=apart)


def test_the_first_gathers_of_a_trip_start_in_the_trip_before_and_are_as_many() -> None:
    alone = zero3(scanned, pt.Mesh(data=8, memory="1MiB"))
    assert not a_trip_ahead(alone)
    assert {move.trip_ahead for move in a_trip_ahead(PLAN)} <= {*PLAN.decisions.moves}
    assert alone.counts() == PLAN.counts() and alone.bytes_per_device() == PLAN.bytes_per_device()
    for region, ahead in PLAN.decisions.ahead.items():
        placements = PLAN.decisions.placements
        sizes = [placements.local_bytes(each.value, each.target) for each in a_trip_ahead(PLAN) if each.region == region]
        assert sum(sizes) == ahead.bytes <= ahead.room and ahead.exposed[ahead.bytes] <= ahead.exposed[0]
    assert (
        alone.memory().bytes
        < PLAN.memory().bytes
        <= alone.memory().bytes + max(ahead.bytes for ahead in PLAN.decisions.ahead.values())
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_scan_in_a_micro_batch_gathers_for_its_next_trip(first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan() -> pt.Plan:
        tactics: list[pt.Tactic] = [pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params")]
        tactics.insert(0 if first else 2, pt.Microbatch(4, inputs="x"))
        return pt.plan(jax.value_and_grad(recomputed), pt.Mesh(data=8), *ARGS).apply(*tactics)

    plain = plan().compile()(*ARGS)
    assert a_trip_ahead(plan())
    monkeypatch.setattr(bind, "platform", lambda: "gpu")
    ahead, whole = plan().compile()(*ARGS), jax.value_and_grad(recomputed)(*ARGS)
    for one, other, right in zip(*map(jax.tree.leaves, (ahead, plain, whole)), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, right, rtol=0, atol=2e-4 * float(jnp.abs(right).max()))


def test_a_body_says_what_starts_for_the_next_trip_and_where() -> None:
    assert "spmd.prefetch" in str(PLAN.spmd())
    lowers_from_its_text(PLAN)
    lowers_from_its_decisions(PLAN)


def test_a_value_that_depends_on_the_trip_before_is_not_gathered_in_it() -> None:
    """Parameters that a loop carries change from trip to trip; a loop of one trip has none before."""

    def carried(params: Any, x: Any) -> Any:
        def step(state: Any, _: None) -> tuple[Any, None]:
            w, x = state
            return (jnp.roll(w, 1, 0), jnp.tanh(x @ w["up"] @ w["down"]) if isinstance(w, dict) else jnp.tanh(x @ w)), None

        return lax.scan(step, (params["up"][0][:, :WIDTH], x), None, length=4)[0][1].sum()

    def once(params: Any, x: Any) -> Any:
        return lax.scan(layer, x, jax.tree.map(lambda each: each[:1], params))[0].sum()

    for fn in (carried, once):
        assert not a_trip_ahead(zero3(fn, pt.Mesh(data=8)))


def test_a_text_in_which_something_else_starts_a_trip_ahead_is_refused() -> None:
    text = str(lowering.decisions(PLAN))
    numbers = re.search(r"plan.move<(\d+): [^>]*, during (\d+)", text)
    assert numbers is not None
    before = re.search(r"plan.move<(\d+): [^>]*by all_reduce[^,>]*", text)
    assert before is not None
    with pytest.raises(pt.Error, match="in a scan, a gather of rows can"):
        stages.decisions_of(parse(text.replace(before[0], f"{before[0]}, during {before[1]}", 1)))


def test_a_prefetch_of_what_the_trip_before_makes_is_refused() -> None:
    scan = next(op for op in PLAN.spmd().walk() if isinstance(op, ScanOp))
    (body,) = scan.regions
    start = next(op for op in body.block.ops if isinstance(op, spmd.PrefetchOp))
    start.operands[0] = body.block.args[scan.entry.carries.start]
    skewed = prefetch.Skewed(body.block, lambda op, given: bind.run_op(op, given, ()))
    with pytest.raises(pt.Error, match="depends on the trip before"):
        prefetch.scan(skewed, scan.entry, [jnp.zeros(())] * len(scan.operands), scan.params)


def test_a_plan_says_what_starts_a_trip_ahead_and_what_a_device_waits_for() -> None:
    most = max(each.bytes for each in PLAN.decisions.ahead.values())
    assert f"gathers start in loops a trip ahead, {of_bytes(most)} at most" in str(PLAN)
    each = next(each for each in PLAN.collectives() if PLAN.decisions.moves[each.move].trip_ahead)
    assert re.search(
        r"it starts with the use of `params/\w+`.* in the trip before: a device of v5e is", str(PLAN.explain(each))
    )


def test_loops_in_each_other_gather_ahead_within_the_memory_that_a_mesh_says() -> None:
    """What one holds for its next trip, the other has not."""

    def nested(params: Any, x: Any) -> Any:
        def step(x: Any, w: Any) -> tuple[Any, None]:
            x = jnp.tanh(x @ w["a"]) @ w["a"].T
            x = lax.scan(lambda x, w: (jnp.tanh(x @ w) @ w.T, None), x, w["in"])[0]
            return jnp.tanh(x @ w["b"]) @ w["b"].T, None

        return (lax.scan(step, x, params)[0] ** 2).sum()

    shapes = {"a": (4, WIDTH, 2 * WIDTH), "b": (4, WIDTH, 2 * WIDTH), "in": (4, 6, WIDTH, 2 * WIDTH)}
    args = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}, ARGS[1][:1024]

    def plan(memory: int) -> pt.Plan:
        mesh = pt.Mesh(data=8, memory=f"{memory}B")
        return pt.plan(nested, mesh, *args).apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params"))

    one = WIDTH * 2 * WIDTH * 4
    least = plan(1000).memory().bytes
    for memory in (least + one + 1000, least + 2 * one):
        assert a_trip_ahead(plan(memory)) and plan(memory).memory().bytes <= memory


def test_what_makes_a_value_is_found_once_however_often_it_is_read() -> None:
    scan = next(op for op in PLAN.spmd().walk() if isinstance(op, ScanOp))
    block = scan.regions[0].block
    value = next(arg for arg in block.args if isinstance(arg.type, ArrayType))
    end, added = block.last_op, 64
    assert end is not None
    for _ in range(added):
        block.insert_op_before(made := test.TestOp([value, value], [value.type]), end)
        (value,) = made.results
    cone = prefetch.Cone(value, block)
    assert len(cone.ops) == added and len(cone.leaves) == 1
