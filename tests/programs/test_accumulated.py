"""A sum that a loop accumulates resolves once after the loop, if nothing in the loop needs its value."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from bisect import bisect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxpr_collectives import collectives, counts
from lowered import lowers_from_its_text

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
TRIPS = 5
DATA = pt.Tile({"batch": 1}, "data")

Tree = Any


def loss(params: Tree, part: Tree) -> jax.Array:
    return jnp.mean((jnp.tanh(part["x"] @ params["w1"]) @ params["w2"] - part["y"]) ** 2)


def accumulated(params: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
    """One step of gradient descent whose batch comes in parts: `[part, row, width]`."""

    def add(total: Tree, part: Tree) -> tuple[Tree, None]:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, part)), None

    (value, grads), _ = jax.lax.scan(add, (0.0, jax.tree.map(jnp.zeros_like, params)), batch)

    def less(p: jax.Array, g: jax.Array) -> jax.Array:
        return p - g / TRIPS

    return jax.tree.map(less, params, grads), value / TRIPS


def normal(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


TRAINING = (
    {"w1": normal(0, 8, 16), "w2": normal(1, 16, 8)},
    {"x": normal(2, TRIPS, 16, 8), "y": normal(3, TRIPS, 16, 8)},
)


def sent(plan: Plan, *args: Any) -> dict[str, int]:
    """The collectives of a plan, which are also those of the jaxpr that JAX runs. The plan computes what the program does."""
    assert counts(collectives(plan.compile(), *args)) == plan.counts()
    assert plan.check(*args) <= 2e-4
    lowers_from_its_text(plan)
    return {kind: count for kind, count in plan.counts().items() if count}


@pytest.mark.parametrize(
    ("tactics", "expected"),
    [
        ([DATA], {"all_reduce": 1 + 2}),
        # After the second matrix, in each part; the gradient of the input is not needed.
        ([DATA, pt.Megatron("model", column="params/w1")], {"all_reduce": 1 + 2 + TRIPS}),
        ([DATA, pt.Tile({"batch": 1}, "model")], {"all_reduce": 1 + 2}),
    ],
    ids=["data", "data and Megatron", "two axes"],
)
def test_gradients_of_all_parts_of_a_batch_are_summed_at_once(tactics: list[Any], expected: dict[str, int]) -> None:
    assert sent(pt.plan(accumulated, MESH, *TRAINING).apply(*tactics), *TRAINING) == expected


def test_gradients_that_are_stored_in_parts_are_scattered_after_the_loop() -> None:
    # Before the loop, each matrix is gathered for all trips.
    plan = pt.plan(accumulated, MESH, *TRAINING).apply(DATA, pt.ZeRO(3, "data", params="params"))
    assert sent(plan, *TRAINING) == {"all_gather": 2, "reduce_scatter": 2, "all_reduce": 1}


LAYERS = 3


def deep(params: Tree, batch: Tree) -> Tree:
    """The gradient of stacked layers, over micro-batches: each trip of one loop has a loop over the layers."""

    def loss(params: Tree, part: Tree) -> jax.Array:
        def layer(x: jax.Array, w: Tree) -> tuple[jax.Array, None]:
            return x + jnp.tanh(x @ w["up"]) @ w["down"], None

        return jnp.mean((jax.lax.scan(layer, part["x"], params)[0] - part["y"]) ** 2)

    def add(total: Tree, part: Tree) -> tuple[Tree, None]:
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, part)), None

    grads, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), batch)

    def less(p: jax.Array, g: jax.Array) -> jax.Array:
        return p - g / TRIPS

    return jax.tree.map(less, params, grads)


DEEP = {"up": normal(6, LAYERS, 8, 16) / 4, "down": normal(7, LAYERS, 16, 8) / 4}, TRAINING[1]
MORE = 2 * 4 * LAYERS * 8 * 16 * 3 // 4
"""The bytes of a gradient that three other devices would have: once as it is stacked, once as the total."""
STORED = [DATA, *(pt.Tile({f"params/{name}": 1}, "data") for name in DEEP[0])]


def test_gradients_of_stacked_layers_are_scattered_after_the_loop_over_micro_batches() -> None:
    plan = pt.plan(deep, MESH, *DEEP).apply(*STORED)
    assert sent(plan, *DEEP)["reduce_scatter"] == len(DEEP[0])
    for each in [each for each in plan.collectives() if each.kind == "reduce_scatter"]:
        said = str(plan.explain(each))
        assert "until the loop ends, a device holds `carry#" in said
        assert f"`, and what an inner loop stacks for it, undivided over `data`: {MORE:,} bytes more" in said


def test_what_a_sum_over_two_axes_takes_until_the_loop_ends_is_said_once() -> None:
    both = [pt.Tile({"batch": 1}, axis) for axis in MESH]
    stored = [pt.Tile({f"params/{name}": 1}, axis) for name in TRAINING[0] for axis in MESH]
    plan = pt.plan(accumulated, MESH, *TRAINING).apply(*both, *stored)
    assert sent(plan, *TRAINING)["reduce_scatter"] == len(TRAINING[0])
    for each in [each for each in plan.collectives() if each.kind == "reduce_scatter"]:
        (said,) = [line for line in str(plan.explain(each)).splitlines() if "until" in line]
        assert said.endswith(f"undivided over `data` and `model`: {4 * 8 * 16 * 7 // 8:,} bytes more")


def test_a_sum_that_each_trip_reads_too_does_not_wait_for_memory() -> None:
    """With the norm of each micro-batch's gradients: then it is not the memory that is short."""

    def normed(params: Tree, batch: Tree) -> Tree:
        def add(total: Tree, part: Tree) -> tuple[Tree, jax.Array]:
            grads = jax.grad(loss)(params, part)
            squares: Any = sum(jnp.sum(each**2) for each in jax.tree.leaves(grads))
            return jax.tree.map(jnp.add, total, grads), squares

        grads, norms = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), batch)
        return grads, norms

    plan = pt.plan(normed, pt.Mesh(data=4, model=2, memory="1B"), *TRAINING).apply(DATA, pt.ZeRO(3, "data", params="params"))
    assert sent(plan, *TRAINING)["all_reduce"] >= TRIPS
    assert not any("bytes of memory" in str(plan.explain(each)) for each in plan.collectives())


def test_sums_for_which_there_is_no_memory_are_scattered_in_each_trip() -> None:
    def planned(memory: int) -> Plan:
        return pt.plan(deep, pt.Mesh(data=4, model=2, memory=f"{memory + 1}B"), *DEEP).apply(*STORED)

    def least(count: int) -> int:
        """The least memory with which there are so few scatters."""
        return bisect(range(1 << 20), False, key=lambda memory: planned(memory).counts()["reduce_scatter"] <= count)

    trips = TRIPS * LAYERS
    one, both = least(1 + trips), least(2)
    assert both == one + MORE
    for memory, count in ((both, 2), (both - 1, 1 + trips), (one - 1, 2 * trips)):
        plan = planned(memory)
        assert sent(plan, *DEEP)["reduce_scatter"] == count
    first, _ = [each for each in plan.collectives() if each.kind == "reduce_scatter"]
    said = str(plan.explain(first))
    assert f"each trip scatters it, as a device has {one:,} bytes of memory: until the loop ends, a device would" in said
    assert f"`, and what an inner loop stacks for it, undivided over `data`: {MORE:,} bytes more" in said


def test_a_plan_says_what_was_summed_after_the_loop() -> None:
    plan = pt.plan(accumulated, MESH, *TRAINING).apply(DATA)
    assert {(each.kind, each.value) for each in plan.collectives()} == {("all_reduce", f"leave#{at}") for at in range(3)}
    assert all("Tile" in str(each) for each in plan.collectives())


# Loops over products `x @ y` whose folded index is placed: each trip has a pending sum.

X, Y = normal(4, 4, 16), normal(5, 16, 4)
Loop = Callable[[jax.Array, jax.Array], Any]


def folded(loop: Loop) -> dict[str, int]:
    return sent(pt.plan(loop, MESH, X, Y).tile("x", 1, "data"), X, Y)


def scanned(body: Callable[[jax.Array, jax.Array], Any], start: float = 0) -> Loop:
    """A loop whose carry begins with one number in all elements; each trip has another pending sum."""

    def loop(x: jax.Array, y: jax.Array) -> Any:
        def trip(carry: jax.Array, factor: jax.Array) -> Any:
            return body(carry, (x * factor) @ y)

        return jax.lax.scan(trip, jnp.full((4, 4), start), jnp.arange(TRIPS) / 4)

    return loop


LOOPS: dict[str, tuple[Loop, int]] = {
    "it is added up": (scanned(lambda acc, s: (acc + s, None)), 1),
    "it is subtracted, halved, and added twice": (scanned(lambda acc, s: ((acc - s / 2) + s + s, None)), 1),
    "only the last one counts": (scanned(lambda acc, s: (s, None)), 1),
    "only the last one counts, and is a factor": (scanned(lambda acc, s: (s, acc * s)), TRIPS),
    "only the last one counts, and is added": (scanned(lambda acc, s: (s, acc + s + s)), TRIPS),
    "it begins with more than zero": (scanned(lambda acc, s: (acc + s, None), 1), 1),
    "it is scaled in each trip": (scanned(lambda acc, s: (0.9 * acc + 0.1 * s, None), 1), 1),
    "it is scaled and transposed in each trip": (scanned(lambda acc, s: (0.9 * (acc - acc.T / 2) + s, None), 1), 1),
    "a number is added in each trip, which would count on every device": (
        scanned(lambda acc, s: (acc / 2 + 1 + s, None)),
        TRIPS,
    ),
    "what is added up is wanted whole in each trip": (scanned(lambda acc, s: (acc + s, jnp.tanh(acc))), TRIPS),
    "it is added to what becomes of it": (scanned(lambda acc, s: (jnp.tanh(acc + s), None)), TRIPS),
    "it is also a factor": (scanned(lambda acc, s: (acc + s + acc * s, None)), TRIPS),
    "it is a factor before it is added": (scanned(lambda acc, s: (acc * s + (acc + s), acc * s)), TRIPS),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_sum_waits_for_the_end_of_a_loop_if(name: str) -> None:
    loop, expected = LOOPS[name]
    assert folded(loop) == {"all_reduce": expected}


def test_a_sum_waits_for_the_end_of_the_outermost_loop() -> None:
    def loop(x: jax.Array, y: jax.Array) -> Any:
        def inner(acc: jax.Array, factor: jax.Array) -> Any:
            return acc + (x * factor) @ y, None

        def outer(acc: jax.Array, factors: jax.Array) -> Any:
            return jax.lax.scan(inner, acc, factors)[0], None

        return jax.lax.scan(outer, jnp.zeros((4, 4)), jnp.arange(6.0).reshape(3, 2))[0]

    assert folded(loop) == {"all_reduce": 1}


def test_sums_over_two_axes_wait_together() -> None:
    def loop(x: jax.Array, y: jax.Array, z: jax.Array, w: jax.Array) -> Any:
        def both(acc: jax.Array, factor: jax.Array) -> Any:
            return acc + (x * factor) @ y + (z * factor) @ w, None

        return jax.lax.scan(both, jnp.zeros((4, 4)), jnp.arange(TRIPS) / 4)[0]

    given = X, Y, 2 * X, 3 * Y
    plan = pt.plan(loop, MESH, *given).tile("x", 1, "data").tile("z", 1, "model")
    assert sent(plan, *given) == {"all_reduce": 1}


def test_a_sum_that_all_branches_leave_pending_resolves_after_them() -> None:
    def branches(x: jax.Array, y: jax.Array, which: jax.Array) -> jax.Array:
        return jax.lax.switch(which, [lambda: x @ y, lambda: (x * 2) @ y, lambda: jnp.zeros((4, 4))])

    given = X, Y, jnp.asarray(1)
    plan = pt.plan(branches, MESH, *given).tile("y", 0, "data")
    assert sent(plan, *given) == {"all_reduce": 1}
    assert "cond" not in str(plan.collectives()[0])


def test_two_loops_that_begin_with_the_same_zero_are_summed_one_after_the_other() -> None:
    def total(rows: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda c, row: (c + row, None), jnp.float32(0), rows)[0]

    def sums(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return total(x.sum(1)), total((x * x).sum(1))

    x = jnp.arange(32.0).reshape(4, 8)
    plan = pt.plan(sums, MESH, x).tile("x", 1, "data")
    assert plan.counts()["all_reduce"] == 2
    assert plan.compile()(x) == plan.lower("collective").run(x) == sums(x)
    lowers_from_its_text(plan)
