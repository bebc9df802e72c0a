"""Sorts along a placed dim: each device sorts its block, and pairs of devices merge their blocks."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from itertools import product
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
from partita.rewrites.redistribute.kinds.merge import network

RANDOM = np.random.default_rng(0)
SPECIAL = np.array([np.nan, -np.inf, np.inf, 0.0, -0.0, 1.0, 2.0], np.float32)
POOL = np.concatenate([SPECIAL, -np.abs(SPECIAL[:1])])
INTS = RANDOM.integers(-9, 9, (3, 48)).astype(np.int32)
FLOATS = RANDOM.choice(POOL, (3, 48))


def tiled(function: Callable[..., Any], *args: Any, size: int = 8, padded: bool = False) -> Plan:
    return pt.plan(function, pt.Mesh(x=size), *args).tile("x", 1, "x", padded=padded)


def agree(plan: Plan, function: Callable[..., Any], *args: Any) -> None:
    """Every bit of the results is that of the unpartitioned function, compiled and interpreted."""
    same(plan.compile()(*args), function(*args))
    same(interpreted(plan, args), function(*args))
    assert executions(plan.spmd())[0] == dict(plan.counts())


def same(found: Any, wanted: Any) -> None:
    for one, other in zip(map(np.asarray, jax.tree.leaves(found)), map(np.asarray, jax.tree.leaves(wanted)), strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


# --- the network -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(1, 10))
def test_the_network_sorts_blocks_of_zeros_and_ones(count: int) -> None:
    """So it sorts all blocks: Knuth, volume 3, section 5.3.4."""
    length = 2 if count < 6 else 1
    for ones in product(range(length + 1), repeat=count):
        blocks = [np.array([0] * (length - each) + [1] * each) for each in ones]
        for round in network(count):
            before = [each[::-1] if round.opens else each for each in blocks]
            for sender, receiver in round.pairs(count):
                keep = np.minimum if receiver < sender else np.maximum
                blocks[receiver] = keep(blocks[receiver], before[sender])
            if round.ends:
                blocks = [np.sort(each) for each in blocks]
        assert (np.diff(np.concatenate(blocks)) >= 0).all()


@pytest.mark.parametrize(("count", "rounds"), [(1, 0), (2, 1), (3, 3), (4, 3), (7, 6), (8, 6), (16, 10), (256, 36)])
def test_the_number_of_rounds(count: int, rounds: int) -> None:
    assert len(network(count)) == rounds


# --- what it costs ---------------------------------------------------------------------------------------------------

ROW = 3 * 48 // 8
"""The elements of a block on 8 devices."""


def test_six_blocks_are_received_on_eight_devices() -> None:
    plan = tiled(lambda x: jnp.sort(x, 1), INTS)
    assert plan.counts()["permute"] == sum(plan.counts().values()) == 6 and not plan.blocked
    assert plan.bytes_per_device() == 6 * ROW * 4
    assert plan.layout("result") == {"result": "i32[3, x*6]"}
    first = plan.collectives()[0]
    assert str(first).startswith("permute of `result` over x: 72 bytes, needed by `sort` at ")
    assert first.why == "the sorted blocks, which are merged" and first.causes == ((1, "tile('x', 1, 'x')"),)
    assert "merge over (x) of dim 1, in 6 rounds" in plan.explain("result")
    # No device has more than its block and that of its partner.
    assert not [line for line in str(plan.spmd()).splitlines() if "i32[3, 12]" in line or "i32[3, 48]" in line]
    agree(plan, lambda x: jnp.sort(x, 1), INTS)
    assert jax.tree.leaves(plan.lower("collective").run(INTS))[0].tobytes() == np.sort(INTS, 1).tobytes()
    lowers_from_its_text(plan)


def test_the_number_of_a_block_moves_where_ties_matter() -> None:
    """Not in the first round of a merge. So zeros keep their signs in order, and NaN its bits."""
    plan = tiled(lambda x: lax.sort(x, dimension=1), FLOATS)
    assert (plan.counts()["permute"], plan.bytes_per_device()) == (9, ROW * (6 * 4 + 3))
    agree(plan, lambda x: lax.sort(x, dimension=1), FLOATS)


@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_a_merge_that_receives_more_than_a_gather_is_one(size: int) -> None:
    def both(x: Any, y: Any) -> Any:
        return lax.sort(x, dimension=1), lax.sort(y, dimension=1)

    plan = tiled(both, INTS, FLOATS, size=size).tile("y", 1, "x")
    block = 3 * 48 // size * 4
    rounds = {2: (1, 1), 3: (2, 2), 4: (3, 3), 6: (5, 5)}[size]
    assert plan.bytes_per_device() == sum(rounds) * block
    merged = {2: 2, 3: 0, 4: 1, 6: 0}[size]
    reason = f"a merge of {size} blocks would receive more than a gather"
    assert [stop.reason for stop in plan.blocked] == [reason] * (2 - merged)
    agree(plan, both, INTS, FLOATS)


def test_positions_cost_a_gather_nothing() -> None:
    """Every device makes them itself. So an argsort is merged on many devices only."""
    plan = tiled(lambda x: jnp.argsort(x, 1), FLOATS)
    assert (plan.counts()["all_gather"], plan.bytes_per_device()) == (1, 7 * ROW * 4)
    agree(plan, lambda x: jnp.argsort(x, 1), FLOATS)
    many = tiled(lambda x: jnp.argsort(x, 1), jax.ShapeDtypeStruct((1, 128), np.float32), size=64)
    assert (many.counts()["permute"], many.bytes_per_device()) == (21 + 21 + 15, 2 * (21 * 8 + 15))
    assert many.bytes_per_device() <= 2 * 63 * 4


@pytest.mark.parametrize(
    "function",
    [lambda x: jnp.sort(x, 1), lambda x: lax.sort((x, x * 2), dimension=1, num_keys=1)[1]],
    ids=["alone", "with another array"],
)
def test_an_array_that_is_wanted_whole_is_gathered_before_it_is_sorted(function: Callable[..., Any]) -> None:
    """A merge and a gather of its result would receive more."""
    plan = pt.plan(function, pt.Mesh(x=8), INTS).replicate("result", "x").tile("x", 1, "x")
    assert plan.bytes_per_device() == len(plan.collectives()) * 7 * ROW * 4
    assert plan.counts()["all_gather"] == sum(plan.counts().values())
    assert plan.blocked and all(stop.op == "sort" and "its result is wanted whole" in stop.reason for stop in plan.blocked)
    assert sum(stop.bytes for stop in plan.blocked) == plan.bytes_per_device()
    agree(plan, function, INTS)


def test_a_result_stays_in_blocks_where_the_operand_is_gathered() -> None:
    """It is sliced: that receives nothing."""

    def function(x: Any) -> Any:
        y = jnp.sort(x, 1)
        return y, y[:, ::-1][:, :3]

    plan = tiled(function, FLOATS)
    assert plan.counts()["permute"] == 0 and plan.layout("result/0") == {"result/0": "f32[3, x*6]"}
    assert plan.compile().out_shardings[0].spec == jax.sharding.PartitionSpec(None, "x")
    np.testing.assert_array_equal(plan.compile()(FLOATS)[0], function(FLOATS)[0])


def test_a_descending_sort_is_a_merge_and_a_permute_that_turns_it_around() -> None:
    plan = tiled(lambda x: jnp.sort(x, 1, descending=True), INTS)
    assert (plan.counts()["permute"], plan.bytes_per_device()) == (6 + 1, 7 * ROW * 4)
    assert plan.layout("result") == {"result": "i32[3, x*6]"}
    agree(plan, lambda x: jnp.sort(x, 1, descending=True), INTS)


def test_two_axes_merge_together_and_rows_stay_tiled() -> None:
    plan = pt.plan(lambda x: jnp.sort(x, 1), pt.Mesh(a=2, b=4, r=3), jax.ShapeDtypeStruct((3, 48), np.int32))
    plan = plan.tile("x", 1, "b").tile("x", 1, "a").tile("x", 0, "r")
    assert plan.layout("result") == {"result": "i32[r, b*a*6]"}
    assert (plan.counts()["permute"], plan.bytes_per_device()) == (6, 6 * 6 * 4)
    assert str(plan.spmd()).count(" over (b, a) pairs ") == 6
    (found,) = interpreted(plan, (INTS,))
    np.testing.assert_array_equal(found, np.sort(INTS, 1))


# --- what it means ---------------------------------------------------------------------------------------------------


def test_what_follows_a_sort_is_partitioned() -> None:
    def function(x: Any, w: Any) -> Any:
        return jnp.sort(x, 1) @ w, jnp.median(x, 1)

    w = np.ones((48, 2), np.float32)
    plan = pt.plan(function, pt.Mesh(x=8), FLOATS, w).tile("x", 1, "x")
    assert plan.layout("w") == {"w": "f32[x*6, 2]"} and not plan.blocked
    assert plan.counts()["all_gather"] == 0


def test_a_sort_in_a_loop() -> None:
    def function(x: Any) -> Any:
        return lax.scan(lambda x, _: (jnp.sort(x * 3 % 11, 1), x[:, 0]), x, length=3)

    plan = tiled(function, INTS, size=2)
    assert plan.counts()["permute"] == 3
    agree(plan, function, INTS)


def test_the_gradient_of_a_sort() -> None:
    def loss(x: Any) -> Any:
        return (jnp.sort(jnp.sin(x), 1) * jnp.arange(48)[None]).sum()

    x = RANDOM.normal(size=(3, 48)).astype(np.float32)
    wanted = jax.grad(loss)(x)
    plan = tiled(jax.grad(loss), x)
    assert plan.bytes_per_device() <= 7 * ROW * 4
    np.testing.assert_allclose(plan.compile()(x), wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(tiled(loss, x, size=2).compile())(x), wanted, rtol=1e-6)


@pytest.mark.parametrize("least", [False, True])
def test_the_approximately_best_of_blocks_are_selected_from_again(least: bool) -> None:
    def best(x: Any) -> Any:
        return (lax.approx_min_k if least else lax.approx_max_k)(x, 2)

    x = RANDOM.permutation(96).reshape(2, 48).astype(np.float32)
    plan = tiled(best, x)
    assert (plan.counts()["all_gather"], plan.bytes_per_device()) == (2, 2 * 7 * 2 * 2 * 4) and not plan.blocked
    agree(plan, best, x)


@pytest.mark.parametrize(("value", "size"), [(127, 8), (np.nan, 8), (np.inf, 2), (-np.inf, 2)])
def test_padding_comes_last(value: float, size: int) -> None:
    """After NaN, and after the largest integers that elements of other arrays belong to."""

    def total(x: Any, y: Any) -> Any:
        x, y = lax.sort((x, y), dimension=1, num_keys=1)
        return jnp.where(x == x, x, 1).sum(1), (y * jnp.arange(17)[None]).sum(1)

    x = np.full((2, 17), value).astype(np.float32 if np.isinf(value) or np.isnan(value) else np.int8)
    y = RANDOM.integers(0, 99, (2, 17)).astype(np.int32)
    plan = tiled(total, x, y, size=size, padded=True)
    assert plan.counts()["permute"] == (2 if size == 2 else 15) and not plan.counts()["all_gather"]
    agree(plan, total, x, y)


DTYPES = ["float32", "bfloat16", "bool", "int8", "uint8", "int32", "complex64"]


@settings(max_examples=8)
@given(data=st.data())
def test_ties_and_nan_are_those_of_the_whole_op(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([2, 7, 8]))
    extent = 3 * size
    keys, others = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 2))

    def drawn(dtype: str) -> Any:
        pool = list(POOL if dtype in ("float32", "bfloat16", "complex64") else np.arange(-2, 2))
        values = data.draw(st.lists(st.sampled_from(pool), min_size=extent, max_size=extent))
        x = jnp.asarray(np.stack([values, values[::-1]])).astype(dtype)
        return lax.complex(x.real, x.real[::-1]) if dtype == "complex64" else x

    arrays = [drawn(data.draw(st.sampled_from(DTYPES))) for _ in range(keys + others)]

    def ordered(x: Any, *others: Any) -> Any:
        return lax.sort((x, *others), dimension=1, num_keys=keys)

    same(interpreted(tiled(ordered, *arrays, size=size), arrays), ordered(*arrays))
