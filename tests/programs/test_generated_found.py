"""Defects that generated programs found, each as the sentence that did not hold."""

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
from jaxpr_collectives import collectives, counts
from lowered import interpreted, lowers_from_its_text
from tiles import layout

import partita as pt
from partita.compiler.api.plan import Plan
from partita.dialects.reference.interpret import interpret
from partita.rewrites.decide import price
from partita.rewrites.redistribute.search import path

A = pt.Mesh(a=2)
AB = pt.Mesh(a=3, b=2)


def floats(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def holds(plan: Plan, function: Callable[..., Any], *args: Any) -> None:
    """Every form of the plan computes the function, and the plan counts what is executed."""
    expected: list[Any] = jax.tree.leaves(jax.jit(function)(*args))
    lowers_from_its_text(plan)
    assert disagreement(interpret(plan.ir(fused=False), args), expected) == ""
    assert disagreement(interpret(plan.ir(), args), expected) == ""
    assert disagreement(interpreted(plan, args), expected) == ""
    compiled = plan.compile()
    assert disagreement(jax.tree.leaves(compiled(*args)), expected) == ""
    assert counts(collectives(compiled, *args)) == plan.counts()


def test_a_result_that_only_has_to_be_sliced_is_sliced() -> None:
    def prefix(x: jax.Array) -> jax.Array:
        return jnp.flip(x, 0)

    x = floats(8, 3)
    holds(pt.plan(prefix, A, x).tile("result", 0, "a"), prefix, x)


def test_a_value_that_a_tactic_sliced_is_gathered_where_it_is_wanted_whole() -> None:
    def sorted_backwards(x: jax.Array) -> jax.Array:
        return jnp.sort(jnp.flip(x, 0), 0)

    x = floats(8, 3)
    plan = pt.plan(sorted_backwards, A, x).tile("rev#0", 0, "a").replicate("sort#0", "a")
    assert plan.counts()["all_gather"] == 1
    holds(plan, sorted_backwards, x)


def test_an_op_takes_no_factor_for_which_its_placed_result_has_no_room() -> None:
    def fold(x: jax.Array) -> jax.Array:
        return jnp.sum(x, 0) * 2.0

    x = floats(8, 24)
    plan = pt.plan(fold, AB, x).tile("x", 0, "b").tile("reduce_sum#0", 0, "b").tile("x", 1, "a")
    holds(plan, fold, x)


def test_a_sum_carried_through_an_op_is_sliced_with_what_is_pending() -> None:
    def both(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(x, 0) + jnp.sum(y, 0)

    args = floats(8, 4), floats(8, 4)
    plan = pt.plan(both, A, *args).tile(["x", "y"], 0, "a")
    assert plan.counts()["all_reduce"] == 1
    holds(plan, both, *args)


def test_two_exchanges_within_a_dim_are_one_only_if_each_device_has_a_part_for_every_other() -> None:
    mesh = pt.Mesh(a=2, b=2)
    before = [("a", 0, 1), ("b", 0, 2)]
    few = path(layout((8,), before, mesh), layout((8,), [("a", 0, 2), ("b", 0, 4)], mesh), 4)
    enough = path(layout((16,), before, mesh), layout((16,), [("a", 0, 4), ("b", 0, 8)], mesh), 4)
    assert [step.kind for step in few.steps] == ["all_to_all"] * 2
    assert [step.kind for step in enough.steps] == ["all_to_all"]


def layers(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0]


@pytest.mark.parametrize(
    "trace",
    [
        "replicate('carry#0', 'a')\ntile('dot_general#0', 1, 'a')",
        "tile('dot_general#0', 1, 'a')\nreplicate('carry#0', 'a')",
        "tile('carry#0', 1, 'a')\nreplicate('dot_general#0', 'a')",
        "replicate('carry#0', 'a')\nreplicate('leave#0', 'a')\ntile('dot_general#0', 1, 'a')",
    ],
)
def test_a_carry_that_a_tactic_placed_leaves_its_loop_as_the_loop_carries_it(trace: str) -> None:
    args = floats(2, 8), floats(3, 8, 8)
    holds(pt.replay(layers, A, trace, *args), layers, *args)


def test_what_is_cut_behind_a_loop_is_there_before_it_is_moved_on() -> None:
    def prefixes(x: jax.Array, w: jax.Array) -> jax.Array:
        y = layers(x, w)
        return jnp.argsort(y, 0) + jnp.argsort(y, 1)

    args = floats(8, 8), floats(3, 8, 8)
    plan = pt.plan(prefixes, A, *args).replicate("carry#0", "a").tile("leave#0", 1, "a")
    assert plan.counts()["all_gather"] == 1
    holds(plan, prefixes, *args)


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_ids_that_look_up_the_only_row_still_say_how_many_rows_come_out(mode: str) -> None:
    def rows(table: jax.Array, ids: jax.Array) -> jax.Array:
        return table.at[ids].get(mode=mode)

    args = floats(1, 4), np.array([0, 3, -1, 0, 2, 0, 0, 1], np.int32)
    plan = pt.plan(rows, A, *args).tile("ids", 0, "a")
    assert plan.layout("result") == {"result": "f32[a*4, 4]"}
    holds(plan, rows, *args)


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("tiles", [[(0, "a")], [(1, "b")], [(0, "a"), (1, "b")]], ids=["first", "second", "both"])
def test_each_component_of_an_index_vector_is_shifted_by_itself(mode: str, tiles: list[tuple[int, str]]) -> None:
    def pairs(table: jax.Array, i: jax.Array, j: jax.Array) -> jax.Array:
        return table.at[i, j].get(mode=mode)

    args = floats(6, 8), np.array([0, 9, 1, -9, 5, 7], np.int32), np.array([7, 0, 40, 5, -40, 9], np.int32)
    plan = pt.plan(pairs, AB, *args)
    for dim, axis in tiles:
        plan = plan.tile("table", dim, axis)
    holds(plan, pairs, *args)


def test_the_interpreter_bitcasts_what_a_device_holds_of_one_row() -> None:
    def bits(x: jax.Array) -> jax.Array:
        return jax.lax.bitcast_convert_type(x, jnp.int32) + 1

    x = floats(2, 4, 4)
    holds(pt.plan(bits, A, x).tile("x", 0, "a"), bits, x)


@pytest.mark.parametrize("dim", [0, 1])
def test_truth_values_that_are_looked_up_in_blocks_are_scattered(dim: int) -> None:
    def looked_up(flags: jax.Array, ids: jax.Array) -> jax.Array:
        return flags.at[ids].get(mode="clip")

    args = floats(8, 8) > 0, np.array([0, 3, 9, 0, 2, 7, 7, 1], np.int32)
    plan = pt.plan(looked_up, A, *args).tile("flags", 0, "a").tile("result", dim, "a")
    assert plan.counts()["reduce_scatter"] == 1
    holds(plan, looked_up, *args)


@pytest.mark.parametrize("rows", [1, 4])
def test_an_update_that_breaks_its_promise_is_dropped_from_one_row_as_from_many(rows: int) -> None:
    def added(table: jax.Array, ids: jax.Array, updates: jax.Array) -> jax.Array:
        return table.at[ids].add(updates, mode="promise_in_bounds")

    args = floats(rows), np.array([0, 5, -9, 0, 2, 0, 7, 1], np.int32), floats(8)
    holds(pt.plan(added, A, *args).tile("ids", 0, "a"), added, *args)


def test_a_derivative_looks_up_what_its_function_dropped() -> None:
    """JAX declares all ids in range in the derivative of a minimum, even if the function drops others."""

    def least(x: jax.Array, ids: jax.Array) -> jax.Array:
        rows = jnp.take(x, jnp.zeros_like(ids), 0, mode="clip")
        return jnp.tanh(x.at[ids].min(rows, mode="clip")).sum()

    args = floats(1), np.array([3, 2, 5, 4, 7, 1], np.int32)
    holds(pt.plan(jax.grad(least), A, *args).tile("ids", 0, "a"), jax.grad(least), *args)


@pytest.mark.parametrize("at", ["u", "result"])
@pytest.mark.parametrize(
    "function",
    [
        lambda u: jax.lax.pad(u[:0], jnp.float32(-1), [(1, 2, 1)]) * u,
        lambda u: jnp.concatenate([u[:0], u * 2, u[3:]]),
        lambda u: jnp.concatenate([u[:1], u[:0], u[1:]]) + u,
    ],
)
def test_nobody_reads_a_window_of_no_elements(function: Callable[[Any], Any], at: str) -> None:
    """In the derivative of `lax.cummax` over two elements, arrays without elements are concatenated with others."""
    for each in (function, jax.grad(lambda u: function(u).sum())):
        plan = pt.plan(each, pt.Mesh(a=3), floats(3))
        holds(plan.tile(at if at == "result" else plan.arguments()[0], 0, "a", padded=True), each, floats(3))


def test_a_sum_does_not_wait_on_its_way_to_a_position_in_another_sum() -> None:
    """`ids[0]` is a sum over the devices, which have it or zero, and `ids[0] + 8` one that could wait; not at the slice."""

    def window(ids: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.arcsinh(jax.lax.dynamic_slice(x.sum(0), (ids[0],), (4,)))

    args = np.array([4, 5, 5, 2, 11, 3, 7, 3], np.int32), floats(8, 8)
    for function in (window, jax.grad(lambda ids, x: window(ids, x).sum(), argnums=1)):
        plan = pt.plan(function, A, *args)
        holds(plan.tile("ids", 0, "a").tile("x", 0, "a"), function, *args)


@pytest.mark.parametrize("axes", [("a", "b"), ("b", "a")])
def test_a_permute_numbers_devices_in_the_order_of_its_axes(axes: tuple[str, str]) -> None:
    """JAX numbers them in the order of the mesh, in permutes alone. The blocks of a sort are merged by permutes."""
    x = np.array([4, -1, 9, 2, 9, -1, 1, 3], np.int32)
    plan = pt.plan(jax.lax.sort, pt.Mesh(a=2, b=2), x)
    for axis in axes:
        plan = plan.tile(plan.arguments()[0], 0, axis)
    assert plan.counts()["permute"] == 3
    holds(plan, jax.lax.sort, x)


def test_an_axis_that_leaves_a_padded_dim_leaves_the_others_the_dim() -> None:
    """`square` has its layout from what it reads. Without `b`, blocks of one row on two devices do not cover three rows."""

    def both(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.arcsinh(x), jnp.tanh(jnp.square(x))

    x, mesh = floats(3, 8), pt.Mesh(b=2, c=2)
    plan = pt.plan(both, mesh, x).tile("asinh#0", 0, "b", padded=True).tile("asinh#0", 0, "c").tile("square#0", 1, "b")
    assert plan.layout("square#0") == {"square#0": "f32[c*2 pad 3, b*4]"}
    holds(plan, both, x)


def test_the_interpreter_computes_with_the_infinities_of_padding() -> None:
    """A maximum pool of padding is -inf, and its products are NaN: no warning, because no fold counts them."""

    def pooled(x: jax.Array, w: jax.Array) -> jax.Array:
        rows = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2), (1, 2), "VALID")
        return (jnp.tanh(rows.T @ w) ** 2).sum()

    args = floats(16, 6), floats(16, 4)
    holds(pt.plan(pooled, A, *args).tile("x", 1, "a", padded=True), pooled, *args)


def test_an_op_carries_no_sum_if_the_windows_are_lost_without_its_axis() -> None:
    def padded(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.pad((w @ x)[::2], (1, 3))

    args = floats(8, 8), floats(8)
    plan = pt.plan(padded, pt.Mesh(a=2, b=4), *args)
    holds(plan.tile("x", 0, "a").tile("result", 0, "a").tile("result", 0, "b"), padded, *args)


def test_windows_of_one_element_on_two_places_have_a_text() -> None:
    def first(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x[:4] * 3, w * 2

    args = floats(8, 8), floats(8)
    plan = pt.plan(first, pt.Mesh(b=4), *args).tile("result/0", 0, "b").tile("w", 0, "b.0:2")
    assert "(b.0:2*b.1:2) of 8" in str(plan.ir())
    holds(plan, first, *args)


def test_an_axis_leaves_windows_that_run_backwards() -> None:
    """The other axis has only half of the rows alone, so the value is replicated over it."""

    def turned(x: jax.Array) -> jax.Array:
        once = jax.lax.rev(jnp.sin(x), (0,))
        return jnp.cos(jax.lax.rev(jax.lax.rev(once, (0,)), (0,)))

    args = (floats(24, 24),)
    plan = pt.plan(turned, pt.Mesh(a=2, b=2), *args).tile("result", 0, "a").tile("result", 0, "b").tile("rev#1", 1, "a")
    assert "rev#1: f32[24, a*12]" in plan.explain("rev#1")
    holds(plan, turned, *args)


def test_a_value_of_which_an_op_reads_no_window_follows_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relocation asks whether ops may follow one that reads on `a.0:2` and the loop, where others are placed in turn."""

    def pooled(x: jax.Array) -> tuple[jax.Array, ...]:
        def body(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            carry = jnp.tanh(jnp.tanh((carry * 0.5 + row)[::-1])[::-1])
            return carry, carry * row

        last, rows = jax.lax.scan(body, jnp.zeros(8, np.float32), x)
        y = rows + last[None]
        largest = jax.lax.reduce_window(y, -np.inf, jax.lax.max, (2, 1), (2, 1), "VALID")
        return largest, jnp.stack([y, y], 1), x != x

    monkeypatch.setattr(price, "START", 0.0)
    x = floats(16, 8)
    plan = pt.plan(pooled, pt.Mesh(a=4), x).tile("broadcast_in_dim#2", 0, "a", block=2).tile("result/2", 0, "a.1:2")
    plan = plan.widen("result/1").tile("x", 1, ("a.0:2", "t:4"), padded=True).tile("collect#0", 1, "a.1:2", padded=True)
    holds(plan, pooled, x)
