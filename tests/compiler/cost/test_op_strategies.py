"""A tiled table is looked up in blocks, or gathered first: the order of tactics decides, and the plan shows it."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from jax import lax
from jaxpr_collectives import collectives, counts

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
RANDOM = np.random.default_rng(3)
TABLE = RANDOM.normal(size=(64, 16)).astype(np.float32)
IDS = RANDOM.integers(0, 64, (8, 12)).astype(np.int32)
IN_BLOCKS = "looked up in blocks: masked partial sum"
WHOLE = "gathered for the lookup"

Tactics = Callable[[Plan], Plan]


def embed(table: jax.Array, ids: jax.Array) -> jax.Array:
    return jnp.tanh(jnp.take(table, ids, 0, mode="clip"))


def holds(plan: Plan, function: Callable[..., Any], *args: Any) -> None:
    """Equal to the unpartitioned run on eight devices, with the collectives of the plan."""
    compiled = plan.compile()
    assert disagreement(jax.tree.leaves(compiled(*args)), jax.tree.leaves(jax.jit(function)(*args))) == ""
    assert counts(collectives(compiled, *args)) == plan.counts()


CHOICES: dict[str, tuple[Tactics, str, list[tuple[str, str]]]] = {
    "the table alone": (
        lambda plan: plan.tile("table", 0, "data"),
        "looked up in blocks by `gather`",
        [("all_reduce", IN_BLOCKS)],
    ),
    "the table first": (
        lambda plan: plan.tile("table", 0, "data").tile("ids", 0, "data"),
        "looked up in blocks by `gather`",
        [("all_gather", ""), ("reduce_scatter", IN_BLOCKS)],
    ),
    "the ids first": (
        lambda plan: plan.tile("ids", 0, "data").tile("table", 0, "data"),
        WHOLE,
        [("all_gather", WHOLE)],
    ),
    "on an axis each": (
        lambda plan: plan.tile("ids", 0, "data").tile("table", 0, "model"),
        "looked up in blocks by `gather`",
        [("all_reduce", IN_BLOCKS)],
    ),
    "for storage only": (
        lambda plan: plan.tile("table", 0, "data", propagate=False),
        WHOLE,
        [("all_gather", WHOLE)],
    ),
}


@pytest.mark.parametrize("which", CHOICES)
def test_the_order_of_tactics_says_how_a_table_is_looked_up(which: str) -> None:
    tactics, said, wanted = CHOICES[which]
    plan = tactics(pt.plan(embed, MESH, TABLE, IDS))
    if which == "the table first":
        plan = plan.tile("result", 0, "data")
    assert said in plan.explain("table")
    assert [(each.kind, each.why) for each in plan.collectives()] == wanted
    holds(plan, embed, TABLE, IDS)


def test_ids_and_table_that_are_tiled_at_once_are_a_conflict() -> None:
    plan = pt.plan(embed, MESH, TABLE, IDS).apply(pt.Tile({"table": 0, "ids": 0}, "data"))
    (conflict,) = plan.conflicts
    assert conflict.op == "`gather`" and conflict.resolutions


def test_a_cache_in_blocks_is_written_where_it_lies() -> None:
    def write(cache: jax.Array, update: jax.Array, t: jax.Array) -> jax.Array:
        return lax.dynamic_update_slice(cache, update, (0, 0, t, 0))

    cache, update = (RANDOM.normal(size=(2, 4, n, 8)).astype(np.float32) for n in (16, 3))
    for t in (0, 6, 15):
        args = cache, update, np.int32(t)
        plan = pt.plan(write, MESH, *args).tile("cache", 2, "data")
        assert plan.layout("result") == {"result": "f32[2, 4, data*4, 8]"} and not plan.collectives()
        assert "written in blocks by `dynamic_update_slice`" in plan.explain("cache")
        holds(plan, write, *args)


def test_a_cache_in_blocks_stays_there_through_a_loop_of_decoding() -> None:
    def decode(cache: jax.Array, query: jax.Array) -> jax.Array:
        def step(cache: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
            key = jnp.tanh(query + t)
            cache = lax.dynamic_update_slice(cache, key[:, None], (0, t, 0))
            scores = jnp.where(jnp.arange(16) <= t, jnp.einsum("hd,hsd->hs", query, cache), -1e9)
            return cache, jnp.einsum("hs,hsd->hd", jax.nn.softmax(scores), cache)

        return lax.scan(step, cache, jnp.arange(16))[1]

    args = np.zeros((4, 16, 8), np.float32), RANDOM.normal(size=(4, 8)).astype(np.float32)
    plan = pt.plan(decode, MESH, *args).tile("cache", 1, "data")
    assert plan.counts()["all_gather"] == 0
    holds(plan, decode, *args)


# --- scans ---------------------------------------------------------------------------------------------------------------


def normalised(x: jax.Array) -> jax.Array:
    return lax.cumsum(jnp.exp(x), 0, reverse=True) / lax.cummax(jnp.abs(x), 0)


def test_a_scan_of_blocks_gathers_their_totals_and_says_so() -> None:
    x = RANDOM.normal(size=(16, 8)).astype(np.float32)
    plan = pt.plan(normalised, MESH, x).tile("x", 0, "data").tile("x", 1, "model")
    first, second = plan.collectives()
    assert {first.use, second.use} == {"cumsum", "cummax"} and first.causes == ((1, "tile('x', 0, 'data')"),)
    assert (first.kind, first.bytes, first.why) == ("all_gather", 3 * 4 * 4, "the totals of the blocks of a scan")
    assert "f32[data*4, model*4]{+data behind 0}" in str(plan.ir())
    holds(plan, normalised, x)


def test_two_axes_on_one_dim_are_scanned_in_the_order_of_its_blocks() -> None:
    x = RANDOM.normal(size=(16, 8)).astype(np.float32)
    plan = pt.plan(normalised, MESH, x).tile("x", 0, "model").tile("x", 0, "data")
    assert plan.layout("x") == {"x": "f32[model*data*2, 8]"} and plan.counts()["all_gather"] == 2
    holds(plan, normalised, x)


def test_a_scan_along_blocks_that_are_dealt_in_turn_is_not_placed() -> None:
    def dealt(x: jax.Array) -> jax.Array:
        return jnp.cumsum(x.reshape(2, 8, 4).transpose(1, 0, 2).reshape(16, 4), 0)

    x = RANDOM.normal(size=(16, 4)).astype(np.float32)
    plan = pt.plan(dealt, pt.Mesh(a=2), x).tile("x", 0, "a")
    assert "cumsum" in {each.op for each in plan.blocked}
    holds(plan, dealt, x)


def test_a_scan_of_blocks_in_a_loop_gathers_once_a_trip() -> None:
    def looped(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda _, x: jnp.cumsum(x, 0) * 0.3, x)

    x = RANDOM.normal(size=(16, 8)).astype(np.float32)
    plan = pt.plan(looped, MESH, x).tile("x", 0, "data")
    assert plan.counts()["all_gather"] == 3
    holds(plan, looped, x)


def test_gradients_of_running_sums_are_scans_in_blocks() -> None:
    def loss(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(jnp.cumsum(x, 0)) * lax.cumsum(x, 0, reverse=True))

    x = RANDOM.normal(size=(16, 8)).astype(np.float32)
    plan = pt.plan(jax.grad(loss), MESH, x).tile("x", 0, "data")
    assert plan.layout("result") == {"result": "f32[data*4, 8]"}
    holds(plan, jax.grad(loss), x)
    compiled = pt.plan(loss, MESH, x).tile("x", 0, "data").compile()
    assert disagreement([jax.grad(compiled)(x)], [jax.grad(loss)(x)]) == ""


# --- dims that an op leaves alone -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.rev(x, (1,)),
        lambda x: lax.pad(x, np.float32(0), ((0, 0, 0), (1, 2, 0))),
        lambda x: lax.slice(x, (0, 1), (16, 5)),
        lambda x: lax.concatenate((x, x), 1),
        lambda x: lax.sort(x, dimension=1),
        lambda x: lax.top_k(x, 3),
    ],
    ids=["rev", "pad", "slice", "concatenate", "sort", "top_k"],
)
def test_a_dim_that_an_op_leaves_alone_is_tiled(function: Callable[..., Any]) -> None:
    x = RANDOM.normal(size=(16, 8)).astype(np.float32)
    plan = pt.plan(function, MESH, x).tile("x", 0, "data")
    assert not plan.collectives() and all("[data*4, " in text for text in plan.layout().values())
    holds(plan, function, x)
