"""Values that another device set needs: they cross, or are made again there, whichever costs less."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lowered import reparsed

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.cost.device_sets import made_again
from partita.compiler.cost.memory import over_time
from partita.rewrites.lower.to_flow import to_flow

RANDOM = np.random.default_rng(0)
BATCH, HEADS, LENGTH, WIDTH = 8, 4, 128, 16
IDS = RANDOM.integers(0, 3, (BATCH, LENGTH), np.int32)
X = RANDOM.standard_normal((BATCH, LENGTH, WIDTH), np.float32)
WS = [0.1 * RANDOM.standard_normal((WIDTH, WIDTH), np.float32) for _ in range(2)]
LARGE, SQUARE = (RANDOM.standard_normal(shape, np.float32) for shape in ((256, 1024), (1024, 1024)))
STAGES = pt.On({"block0": 0, "block1": 1}, "stage")
HOW = ("whole", "collective")


def test_what_its_own_set_does_not_read_crosses() -> None:
    """Made again on the other set, the op would run on its own for nothing, and what it reads would cross for that."""

    def turned(x: Any) -> Any:
        with jax.named_scope("block0"):
            a = jnp.tanh(x)
        with jax.named_scope("block1"):
            z = a * 2.0
        with jax.named_scope("block0"):
            return a @ z.T

    x = RANDOM.standard_normal((1024, 32), np.float32)
    plan = pt.plan(turned, pt.Mesh(stage=2, data=4), x).tile("x", 0, "data").apply(STAGES)
    graph = plan.lower()
    assert made_again(plan) == []
    assert all(node.kind != "kernel" or node.results for node in graph.nodes)
    np.testing.assert_allclose(graph.run(x), jax.jit(turned)(x), rtol=1e-5, atol=1e-5)


def attention(mask: Any, x: Any, w: Any) -> Any:
    q = (x @ w).reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS)
    scores = jnp.where(mask, jnp.einsum("bqhd,bkhd->bhqk", q, q), -1e9)
    return x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), q).reshape(x.shape)


def masked(ws: Any, ids: Any, x: Any) -> Any:
    same = ids[:, None, :, None] == ids[:, None, None, :]
    mask = jnp.broadcast_to(same, (BATCH, HEADS, LENGTH, LENGTH))
    for number in range(2):
        with jax.named_scope(f"block{number}"):
            x = attention(mask, x, ws[number])
    return x


def trained(ws: Any, ids: Any, x: Any) -> Any:
    return jax.value_and_grad(lambda ws: jnp.square(masked(ws, ids, x)).mean())(ws)


def staged(fn: Callable[..., Any], *args: Any, batch: Sequence[str] = ("x",), **mesh: Any) -> Plan:
    plan = pt.plan(fn, pt.Mesh(stage=2, data=2, **mesh), *args)
    for value in batch:
        plan = plan.tile(value, 0, "data")
    return plan.apply(STAGES)


def crossing(plan: Plan) -> dict[str, int]:
    return {each.value: each.bytes for each in plan.transfers()}


def again(plan: Plan) -> list[str]:
    """The ops that are made again, but for constants."""
    return [each.node.op_name for each in made_again(plan) if each.node.op_name != "constant"]


def is_the_program(plan: Plan, fn: Callable[..., Any], *args: Any) -> None:
    for how in HOW:
        graph = plan.lower(how)
        for one, other in zip(*(jax.tree.leaves(run(*args)) for run in (graph.run, jax.jit(fn))), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
        assert sum(graph.transferred().values()) == 2 * sum(each.bytes for each in plan.transfers())
        assert graph.counts() == plan.counts()
        assert to_flow(reparsed(str(plan.ir())), how).is_structurally_equivalent(graph.module)


@pytest.mark.parametrize("fn", [masked, trained])
def test_of_a_mask_the_ids_cross(fn: Callable[..., Any]) -> None:
    plan = staged(fn, WS, IDS, X, batch=("ids", "x"))
    sizes = crossing(plan)
    # Of two devices each has half of the batch: not BATCH * HEADS * LENGTH * LENGTH bytes.
    assert sizes["ids"] == BATCH * LENGTH * 4 // 2
    assert not {*sizes} & {"eq#0", "broadcast_in_dim#0", "broadcast_in_dim#1", "broadcast_in_dim#2"}
    assert again(plan) == ["broadcast_in_dim", "broadcast_in_dim", "eq", "broadcast_in_dim"]
    is_the_program(plan, fn, WS, IDS, X)


def test_the_plan_says_what_is_made_again_where_and_what_both_ways_cost() -> None:
    plan = staged(masked, WS, IDS, X, batch=("ids", "x"))
    assert "\nmade again on stage=1: 4 values, 65.5 kFLOP for 256 KiB that do not cross\n" in str(plan)
    (ids,) = [each for each in plan.transfers() if each.value == "ids"]
    assert (ids.use, ids.why) == ("broadcast_in_dim", "it is made again there")
    explained = str(plan.explain("broadcast_in_dim#2"))
    assert "  made again on stage=1, which takes 0.776 microseconds: to cross would take 6.56 microseconds" in explained
    # What depends on nothing but numbers is made again too, and no line says so.
    plan = staged(after(lambda small: jnp.cos(jnp.arange(1024.0)) + small[0, 0]), LARGE[:1, :1], SQUARE, batch=())
    assert "made again on" not in str(plan) and "cos" in again(plan)


def after(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """What both blocks read of what is made of an argument, and the first one reads the argument."""

    def fn(small: Any, w: Any) -> Any:
        made = make(small)
        with jax.named_scope("block0"):
            x = jnp.tanh(made @ w)
        with jax.named_scope("block1"):
            return (x @ w) * made

    return fn


def test_memory_counts_what_is_made_again_as_if_the_program_made_it_there() -> None:
    def make(small: Any) -> Any:
        return jnp.cumsum(jnp.broadcast_to(small[:, None], (1024, 1024)), axis=1)

    def made_by(twice: Callable[[Any, Any], Any]) -> Plan:
        def fn(small: Any, w: Any) -> Any:
            made = make(small)
            with jax.named_scope("block0"):
                x = jnp.tanh(made @ w)
            with jax.named_scope("block1"):
                return jnp.tanh(x @ w) * (twice(made, small) @ w)

        return staged(fn, LARGE[0], SQUARE, batch=["small"])

    plan, by_hand = made_by(lambda made, small: made), made_by(lambda made, small: make(small))
    assert (again(plan), again(by_hand)) == (["broadcast_in_dim", "broadcast_in_dim", "cumsum"], [])
    (memory, ours), (by_itself, said) = map(over_time, (plan, by_hand))
    assert (memory.bytes, str(memory.devices)) == (by_itself.bytes, str(by_itself.devices))
    assert sorted(each.bytes for each in ours.arrays) == sorted(each.bytes for each in said.arrays)
    size = 1024 * 1024 * 4 // 2
    assert {(2048, "transfer"), (size, "made again")} <= {(each.bytes, each.form) for each in ours.arrays}
    assert (size, "made again") in [(each.bytes, each.form) for each in memory.arrays]


def test_of_a_small_array_that_is_broadcast_the_array_crosses() -> None:
    fn, small = after(lambda small: jnp.broadcast_to(small[:, None], (1024, 1024))), LARGE[0]
    plan = staged(fn, small, SQUARE, batch=["small"])
    assert {"small": 2048}.items() <= crossing(plan).items()
    assert again(plan) == ["broadcast_in_dim", "broadcast_in_dim"]
    is_the_program(plan, fn, small, SQUARE)


def test_a_cast_or_a_transpose_of_what_has_crossed_is_made_there() -> None:
    def fn(x: Any, w: Any) -> Any:
        turned = x.astype(jnp.bfloat16).astype(jnp.float32).T
        with jax.named_scope("block0"):
            y = jnp.tanh(turned @ x) @ w
        with jax.named_scope("block1"):
            return turned @ (x @ y)

    plan = staged(fn, LARGE, SQUARE)
    assert {*again(plan)} == {"convert_element_type", "transpose"}
    assert {each.value for each in plan.transfers()}.isdisjoint({"transpose#0", "convert_element_type#0"})
    is_the_program(plan, fn, LARGE / 32, SQUARE / 32)


def test_what_takes_longer_than_its_transfer_crosses() -> None:
    """A product of large matrices, whose sum along rows is small."""
    fn = after(lambda x: jnp.square(x @ x).sum(1, keepdims=True) * jnp.ones((1, 1024), np.float32))
    plan = staged(fn, SQUARE, SQUARE, batch=["small"])
    assert not {"dot_general", "reduce_sum"} & {*again(plan)}
    is_the_program(plan, fn, SQUARE / 64, SQUARE / 64)


def test_what_a_collective_makes_crosses() -> None:
    """A sum over the devices of a set, cast: it is not summed up on the other set too."""

    def fn(x: Any, w: Any) -> Any:
        total = x.sum(0)
        with jax.named_scope("block0"):
            y = jnp.tanh(x * total[None]) @ w
        with jax.named_scope("block1"):
            return jnp.sin(y * total[None] + x)

    plan = staged(fn, LARGE, SQUARE)
    assert "reduce_sum#0" in crossing(plan) and "reduce_sum" not in again(plan)
    is_the_program(plan, fn, LARGE / 32, SQUARE / 32)


def test_a_link_that_is_slow_makes_more_pay() -> None:
    fn, small = after(lambda small: jnp.broadcast_to(small[:, None], (96, 96))), LARGE[0, :96]
    w = SQUARE[:96, :96]
    fast, slow = (staged(fn, small, w, batch=["small"], **how) for how in ({}, {"slow": "stage"}))
    assert (again(fast), again(slow)) == ([], ["broadcast_in_dim", "broadcast_in_dim"])
    is_the_program(slow, fn, small, w / 32)


def test_long_programs_take_no_longer() -> None:
    def deep(x: Any) -> Any:
        for number in range(2):
            with jax.named_scope(f"block{number}"):
                for _ in range(1500):
                    x = jnp.sin(x) + x
        return x

    plan = staged(deep, LARGE)
    start = process_time()
    assert len(plan.transfers()) == 1
    assert process_time() - start < 10
