"""Collectives of the program's own `shard_map`s are counted apart; sums of bytes are exact; branches have one name."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from jaxpr_collectives import collectives, counts, in_branches, received

import partita as pt

MESH = pt.Mesh(data=4, model=2)
X = jnp.linspace(-2.0, 2.0, 64).reshape(8, 8)
Function = Callable[[Any], Any]


ROWS = P("data")


def on(body: Function) -> Function:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    return jax.shard_map(body, mesh=mesh, in_specs=ROWS, out_specs=ROWS, check_vma=False)


def centred(x: jax.Array) -> jax.Array:
    return x - lax.pmean(x, "data")


def gathered(x: jax.Array) -> jax.Array:
    return lax.all_gather(x, "data", tiled=True)


# The own collectives of each program: always, in the branches of its conds, in each trip of its loops.
OWN: dict[str, tuple[Function, dict[str, int], dict[str, int]]] = {
    "a mean": (on(centred), {"all_reduce": 1}, {}),
    "a checked sum": (
        jax.shard_map(
            lambda x: lax.psum(x, "data"),
            mesh=jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model")),
            in_specs=P("data"),
            out_specs=P(),
        ),
        {"all_reduce": 1},
        {},
    ),
    "two arrays in one sum": (on(lambda x: sum(lax.psum((x, -x), ("data", "model")))), {"all_reduce": 2}, {}),
    "each kind": (
        on(lambda x: lax.ppermute(gathered(lax.psum_scatter(x.T, "data", tiled=True)), "data", [(0, 1)]).T),
        {"all_gather": 1, "reduce_scatter": 1, "permute": 1},
        {},
    ),
    "an exchange": (on(lambda x: lax.all_to_all(x, "data", 1, 0, tiled=True).T), {"all_to_all": 1}, {}),
    "in a loop of the program": (lambda x: lax.fori_loop(0, 5, lambda _, c: on(centred)(c), x), {"all_reduce": 5}, {}),
    "a loop in it": (on(lambda x: lax.fori_loop(0, 3, lambda _, c: centred(c), x)), {"all_reduce": 3}, {}),
    "in a branch of the program": (lambda x: lax.cond(x.sum() > 0, on(centred), lambda x: x, x), {}, {"all_reduce": 1}),
    "a branch in it": (
        on(lambda x: lax.cond(lax.axis_index("model") >= 0, lambda x: x, lambda x: centred(centred(x)), x)),
        {},
        {"all_reduce": 2},
    ),
    "a while": (
        lambda x: lax.while_loop(lambda c: c[0, 0] > 1e9, on(centred), x),
        {"all_reduce": 1},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_collectives_of_an_own_shard_map_are_counted_apart(name: str) -> None:
    function, always, branches = OWN[name]
    plan = pt.plan(function, MESH, X)
    found = collectives(plan.compile(), X)
    graph = plan.lower("collective").counts()
    own, ours = plan.counts().own, plan.counts()
    assert {kind: times for kind, times in own.items() if times} == always
    assert own.in_branches == branches
    assert {kind: own[kind] + ours[kind] for kind in own} == counts(found)
    assert {kind: own.in_branches.get(kind, 0) + ours.in_branches.get(kind, 0) for kind in own} == in_branches(found)
    assert (graph.own, graph.own.branches, graph.own.unknown) == (own, own.branches, own.unknown)
    np.testing.assert_allclose(plan.compile()(X), jax.jit(function)(X), rtol=1e-5, atol=1e-5)


def test_a_loop_with_an_unknown_trip_count_lists_its_own_collectives() -> None:
    assert pt.plan(OWN["a while"][0], MESH, X).counts().own.unknown == {"while#0": {"all_reduce": 1}}
    inside = on(lambda x: lax.while_loop(lambda c: c[0, 0] > 1e9, centred, x))
    assert pt.plan(inside, MESH, X).counts().own.unknown == {"own.while#0": {"all_reduce": 1}}


def test_a_plan_says_that_it_does_not_count_own_collectives() -> None:
    counted = pt.plan(OWN["a mean"][0], MESH, X).counts()
    assert not any(counted.values())
    assert counted.text() == "no collectives, and of the program's own shard_maps: 1 all_reduce"
    assert not any(pt.plan(jnp.sin, MESH, X).counts().own.values())


def chosen(x: jax.Array, w: jax.Array) -> jax.Array:
    """Two conds, one in a loop of unknown trip count, and a sum between them."""
    y = lax.cond(x[0, 0] > 0, lambda: jnp.tanh(x @ w), lambda: x * 2)
    y = y * (x @ w).sum()
    y = lax.while_loop(lambda c: c[0, 0] > 9, lambda c: lax.cond(c[0, 1] > 0, lambda c: c @ w, lambda c: -c, c), y)
    return lax.switch(1, [lambda y: y @ w, lambda y: y, lambda y: y.T @ w], y)


@pytest.mark.parametrize("granularity", ["whole", "collective"])
def test_a_graph_calls_branches_and_loops_as_the_plan_does(granularity: str) -> None:
    plan = pt.plan(chosen, MESH, X, X).tile("x", 1, "data").tile("w", 0, "data")
    ours, theirs = plan.counts(), plan.lower(granularity).counts()
    assert {where.split(":")[0] for where in ours.branches} == {"cond#0", "while#0/cond#1", "cond#2"}
    assert (theirs, theirs.branches, theirs.unknown) == (ours, ours.branches, ours.unknown)
    assert plan.lower(granularity).bytes_per_device() == plan.bytes_per_device()


def test_bytes_are_summed_exactly_and_rounded_once() -> None:
    """Each sum of `n` floats over three devices is 16/3 n bytes to one of them: 5 1/3, 21 1/3 and 21 1/3 make 48."""

    def sums(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return x.sum(), x.sum(0), y.sum(0)

    x = jnp.arange(24.0).reshape(6, 4)
    plan = pt.plan(sums, pt.Mesh(a=3, b=2), x, x).tile(["x", "y"], 0, "a")
    exact = sum((each.received * each.times for each in plan.collectives()), Fraction(0))
    assert exact == 48 and plan.bytes_per_device() == 48
    assert plan.lower("whole").bytes_per_device() == plan.lower("collective").bytes_per_device() == 48
    assert received(collectives(plan.compile(), x, x)) == 48
    assert [each.bytes for each in plan.collectives()] == [5, 21, 21]
