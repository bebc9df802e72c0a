"""Programs that an expert would place by hand have the collectives that the expert writes, and compute the same."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from lowered import lowers_from_its_decisions
from sent import BOUND, normal, sent as sent_by

import partita as pt
from partita.compiler.api.plan import Plan
from tests.support.everywhere import agrees

MESH = pt.Mesh(data=8)
ZERO2 = pt.ZeRO(2, "data", params="params", optimizer="opt")
ZERO3 = pt.ZeRO(3, "data", params="params", optimizer="opt")

Tree = Any


def sent(plan: Plan, *args: Any) -> dict[str, int]:
    """The collectives of a plan that stops nowhere."""
    assert not plan.blocked
    return sent_by(plan, *args)


def momentum(grads: Tree, params: Tree, opt: Tree) -> tuple[Tree, Tree]:
    opt = jax.tree.map(lambda before, grad: 0.9 * before + grad, opt, grads)
    return jax.tree.map(lambda param, step: param - 0.1 * step, params, opt), opt


# --- micro-batches -----------------------------------------------------------------------------------------------------

TRIPS = 4
LAYERS = {"w1": normal(16, 32), "w2": normal(32, 16)}
BATCH = {"x": normal(64, 16), "y": normal(64, 17)[:, :16]}


def accumulated(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree]:
    """One step whose batch is taken apart by a loop: `[256, ...]` to `[4, 64, ...]`."""

    def loss(params: Tree, part: Tree) -> jax.Array:
        return jnp.mean((jnp.tanh(part["x"] @ params["w1"]) @ params["w2"] - part["y"]) ** 2)

    def trip(total: Tree, part: Tree) -> tuple[Tree, None]:
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, part)), None

    parts = jax.tree.map(lambda rows: rows.reshape(TRIPS, -1, rows.shape[1]), batch)
    grads, _ = lax.scan(trip, jax.tree.map(jnp.zeros_like, params), parts)
    return momentum(grads, params, opt)


@pytest.mark.parametrize(
    ("zero", "expected"),
    [
        ([], {"all_reduce": 2}),
        ([ZERO2], {"all_gather": 2, "reduce_scatter": 2}),
        ([ZERO3], {"all_gather": 2, "reduce_scatter": 2}),
    ],
    ids=["data parallel", "ZeRO-2", "ZeRO-3"],
)
def test_a_batch_that_a_loop_takes_apart_is_tiled_in_each_of_its_trips(zero: list[Any], expected: dict[str, int]) -> None:
    args = LAYERS, LAYERS, BATCH
    plan = pt.plan(accumulated, MESH, *args).apply(pt.DataParallel("data", inputs="batch"), *zero)
    # The batch comes in one block for each device: two arrays are exchanged, each by at most a permute for each trip.
    exchange = [each for each in plan.collectives() if each.kind == "permute"]
    assert sum(each.received for each in exchange) <= 2 * 64 * 16 * 4 / 8
    assert sent(plan, *args) == {**expected, "permute": len(exchange)}


def test_parameters_may_be_gathered_in_each_trip_instead() -> None:
    args = LAYERS, LAYERS, BATCH
    once = pt.plan(accumulated, MESH, *args).apply(pt.DataParallel("data", inputs="batch"), ZERO3)
    often = once.apply(pt.EachTrip("params"))
    # In each trip `w1` and `w2`, which forward and backward share.
    assert sent(often, *args) == sent(once, *args) | {"all_gather": 2 * TRIPS}
    assert often.bytes_per_device() > once.bytes_per_device()
    assert pt.replay(accumulated, MESH, often.trace, *args).counts() == often.counts()


def test_a_batch_that_trips_do_not_divide_is_tiled_as_any_other() -> None:
    x = normal(64, 4)
    plan = pt.plan(lambda x: lax.map(jnp.sum, x.reshape(16, 4, 4)), MESH, x).tile("x", 0, "data")
    assert plan.layout("x") == {"x": "f32[data*8, 4]"} and plan.blocked


# --- recurrent networks ------------------------------------------------------------------------------------------------


def test_a_weight_that_is_the_same_in_all_trips_is_gathered_once_in_each_direction() -> None:
    params = {"wx": normal(8, 64), "wh": normal(16, 64), "b": normal(1, 64)}

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        def cell(carry: Tree, row: jax.Array) -> Any:
            h, c = carry
            i, f, o, u = jnp.split(row @ params["wx"] + h @ params["wh"] + params["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((x.shape[1], 16))
        return jnp.mean(lax.scan(cell, (start, start), x)[1] ** 2)

    def step(params: Tree, opt: Tree, x: jax.Array) -> Any:
        return momentum(jax.grad(loss)(params, x), params, opt)

    args = params, params, normal(32, 16, 8)
    plan = pt.plan(step, MESH, *args).apply(pt.DataParallel("data", inputs="x", dim=1), ZERO3)
    # Three forward; backward reads one of them again, the recurrent matrix.
    assert sent(plan, *args) == {"all_gather": 3 + 1, "reduce_scatter": 3}


def test_what_is_recomputed_in_a_trip_and_its_gradient_share_a_gather() -> None:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        def layer(h: jax.Array, w: Tree) -> Any:
            return h + jnp.tanh(jnp.tanh(h @ w["up"]) @ w["down"]), None

        return jnp.mean(lax.scan(jax.checkpoint(layer), x, params)[0] ** 2)

    layers = 6
    args = {"up": normal(layers, 16, 32), "down": normal(layers, 32, 16)}, normal(16, 16)
    plan = pt.plan(jax.grad(loss), MESH, *args)
    plan = plan.apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params"))
    # Each of two matrices, forward and backward.
    assert plan.counts()["all_gather"] == 2 * 2 * layers
    assert plan.check(*args) <= BOUND


def test_a_matrix_that_a_while_multiplies_by_is_not_gathered() -> None:
    def solve(a: jax.Array, b: jax.Array) -> jax.Array:
        def step(state: Any) -> Any:
            x, r, p, k = state
            ap = a @ p
            alpha = (r @ r) / (p @ ap)
            after = r - alpha * ap
            return x + alpha * p, after, after + (after @ after) / (r @ r) * p, k + 1

        return lax.while_loop(lambda state: state[3] < 8, step, (jnp.zeros_like(b), b, b, 0))[0]

    half = normal(64, 64)
    args = half @ half.T + 8 * jnp.eye(64), normal(64)
    plan = pt.plan(solve, MESH, *args).tile("a", 0, "data")
    assert all(each.value != "a" and each.received <= 64 * 4 for each in plan.collectives())
    assert plan.check(*args) <= BOUND


# --- carries -----------------------------------------------------------------------------------------------------------

Loop = Callable[[jax.Array, jax.Array], Any]


def made(w: jax.Array, row: jax.Array) -> jax.Array:
    """What a trip adds: a sum over the rows of the batch."""
    return row.T @ jnp.tanh(row @ w)


CARRIES: dict[str, Loop] = {
    "scaled": lambda w, x: lax.scan(lambda c, r: (0.9 * c + made(w, r), None), jnp.zeros_like(w), x)[0],
    "begins elsewhere": lambda w, x: lax.scan(lambda c, r: (0.9 * c + made(w, r), None), w + 1, x)[0],
    "of a while": lambda w, x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] / 2 + made(w, x[c[0]])), (0, w))[1],
    "of a loop in a loop": lambda w, x: lax.scan(
        lambda c, _: (0.5 * lax.scan(lambda d, r: (0.9 * d + made(w, r), None), 2 * c, x)[0], None), w, length=3
    )[0],
}


@pytest.mark.parametrize("loop", CARRIES.values(), ids=CARRIES)
def test_a_carry_is_summed_once_where_it_is(loop: Loop) -> None:
    args = normal(16, 16), normal(4, 32, 16)
    plan = pt.plan(loop, MESH, *args).tile("x", 1, "data")
    assert sent(plan, *args) == {"all_reduce": 1}
    assert plan.counts().unknown == {}


def test_carries_that_exchange_sums_are_one_collective_each() -> None:
    def loop(w: jax.Array, x: jax.Array) -> Any:
        return lax.scan(lambda c, r: ((c[1] + made(w, r), c[0]), None), (w, 2 * w), x)[0]

    args = normal(16, 16), normal(4, 32, 16)
    assert sent(pt.plan(loop, MESH, *args).tile("x", 1, "data"), *args) == {"all_reduce": 2}


X, Y, Z = normal(4, 32, 16), normal(4, 16, 32).transpose(0, 2, 1) + 0.1, normal(32, 16)
W = normal(16, 16)
SUMS: dict[str, tuple[Callable[..., Any], int]] = {
    "a carry that starts from a sum over another axis": (
        lambda w, x, y, z: lax.scan(lambda c, r: (c + r.T @ r, None), z.T @ z, y)[0],
        1,
    ),
    "the same in a while": (
        lambda w, x, y, z: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + y[c[0]].T @ y[0]), (0, z.T @ z))[1],
        1,
    ),
    "branches with sums over different axes": (
        lambda w, x, y, z: lax.cond(w[0, 0] > 0, lambda: z.T @ z, lambda: y[0].T @ y[0]) + z.T @ z,
        1,
    ),
    "branches with a sum, another sum, or none": (
        lambda w, x, y, z: lax.switch(1, [lambda: y[0].T @ y[0], lambda: z.T @ z, lambda: w]) + y[0].T @ y[0] + z.T @ z,
        1,
    ),
    "carries that change places and add to one another": (
        lambda w, x, y, z: lax.scan(lambda c, r: ((c[1], c[0] + r.T @ r), None), (w, z.T @ z), y)[0],
        2,
    ),
}


@pytest.mark.parametrize(("program", "expected"), SUMS.values(), ids=SUMS)
def test_a_term_counts_once_on_the_axes_on_which_it_is_no_sum(program: Callable[..., Any], expected: int) -> None:
    plan = pt.plan(program, pt.Mesh(data=4, model=2), W, X, Y, Z).tile("y", 1, "model").tile("z", 0, "data")
    assert sent(plan, W, X, Y, Z) == {"all_reduce": expected}


FOLDED_TWICE: dict[str, tuple[Callable[[jax.Array], Any], float, int]] = {
    "two folds": (lambda x: jnp.sum(jnp.sum(x, 0), 0), 2 * 7 / 8 * 8, 1),
    "means, scaled between": (lambda x: jnp.mean(3 * jnp.mean(x, 0), 0), 2 * 7 / 8 * 8, 1),
    "a third fold": (lambda x: jnp.sum(jnp.sum(jnp.sum(x, 0), 0)), 2 * 7 / 8, 1),
    "a product": (lambda x: jnp.sum(x, 0).T @ jnp.ones((32, 2)), 2 * 7 / 8 * 8 * 2, 1),
    "in a loop": (
        lambda x: lax.fori_loop(0, 5, lambda i, c: c + i * jnp.sum(jnp.sum(x, 0), 0), jnp.zeros(8)),
        2 * 7 / 8 * 8,
        1,
    ),
    "read by another fold": (lambda x: [jnp.sum(jnp.sum(x, 0), 0), jnp.sum(x, (0, 2))], 2 * 7 / 8 * 8 + 2 * 3 / 4 * 16, 2),
    # What is not linear, or reads the first sum for something else, needs it resolved.
    "a maximum": (lambda x: jnp.max(jnp.sum(x, 0), 0), 2 * 3 / 4 * 16 * 8 + 2 / 2 * 8, 2),
    "squares": (lambda x: jnp.sum(jnp.sum(x, 0) ** 2, 0), 2 * 3 / 4 * 16 * 8 + 2 / 2 * 8, 2),
    "read by a sine": (lambda x: (lambda s: [jnp.sum(s, 0), jnp.sin(s)])(jnp.sum(x, 0)), 2 * 3 / 4 * 16 * 8 + 2 / 2 * 8, 2),
}


@pytest.mark.parametrize("name", FOLDED_TWICE)
def test_a_sum_of_sums_is_one_sum(name: str) -> None:
    program, elements, collectives = FOLDED_TWICE[name]
    x = normal(64, 32, 8)
    plan = pt.plan(program, pt.Mesh(data=4, model=2), x).tile("x", 0, "data").tile("x", 1, "model")
    assert plan.bytes_per_device() == 4 * elements and plan.counts()["all_reduce"] == collectives
    agrees(plan, program, x, derived=True)


def test_a_sum_of_sums_is_caused_by_both_tactics_and_its_decisions_are_read_back() -> None:
    plan = pt.plan(FOLDED_TWICE["two folds"][0], pt.Mesh(data=4, model=2), normal(64, 32, 8))
    plan = plan.apply(pt.Tile({"x": 0}, "data"), pt.Tile({"x": 1}, "model"))
    (collective,) = plan.collectives()
    assert all(f"{number}: Tile" in str(collective) for number in (1, 2))
    lowers_from_its_decisions(plan)


def test_a_carry_that_starts_from_zeros_that_are_put_together_is_scattered_after_the_loop() -> None:
    def step(params: Tree, opt: Tree, x: jax.Array) -> Any:
        w = params["w"]
        zeros = jnp.concatenate([jnp.zeros_like(w[:8]), jnp.zeros_like(w[8:])])
        return momentum({"w": lax.scan(lambda c, r: (c + made(w, r), None), zeros, x)[0]}, params, opt)

    args = {"w": W}, {"w": W}, X / 4
    plan = pt.plan(step, MESH, *args).apply(pt.DataParallel("data", inputs="x", dim=1), ZERO3)
    assert sent(plan, *args) == {"all_gather": 1, "reduce_scatter": 1}


def test_sums_that_trips_stack_are_one_all_reduce_after_the_loop() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(lax.scan(lambda h, w: (h + jnp.tanh(h @ w), None), x, w)[0] ** 2)

    args = normal(6, 16, 16), normal(32, 16)
    plan = pt.plan(jax.grad(loss), MESH, *args).apply(pt.DataParallel("data", inputs="x"))
    assert sent(plan, *args) == {"all_reduce": 1}
    # What a trip scatters is stored in parts: it does not wait.
    tiled = plan.apply(pt.Tile({"result": 2}, "data"))
    assert sent(tiled, *args) == {"reduce_scatter": 6}


def test_a_history_of_carries_is_decided_at_once() -> None:
    def shifted(x: jax.Array) -> Any:
        return lax.scan(lambda c, r: ([*c[1:], jnp.tanh(c[0] + r.T @ r)], None), [jnp.zeros((16, 16))] * 40, x)[0][-1]

    plan = pt.plan(shifted, MESH, X).tile("x", 1, "data")
    assert sent(plan, X) == {"all_reduce": 4}


# --- sums of sums ------------------------------------------------------------------------------------------------------


def test_the_norm_of_gradients_on_different_axes_is_one_all_reduce() -> None:
    def clipped(grads: Tree) -> Tree:
        norm = jnp.sqrt(sum(jnp.sum(each**2) for each in jax.tree.leaves(grads)))
        return jax.tree.map(lambda each: each / norm, grads)

    grads = {f"g{number:02}": normal(8, 8) for number in range(20)}
    plan = pt.plan(clipped, pt.Mesh(data=4, model=2), grads)
    plan = plan.tile([f"grads/g{number:02}" for number in (*range(0, 20, 4), *range(2, 20, 4))], 0, "data")
    plan = plan.tile([f"grads/g{number:02}" for number in (*range(1, 20, 4), *range(2, 20, 4))], 1, "model")
    assert sent(plan, grads) == {"all_reduce": 1}
    assert plan.bytes_per_device() == 2 * 4 * 7 / 8


# --- data --------------------------------------------------------------------------------------------------------------


def test_what_no_tactic_stores_is_redistributed_once_for_all_its_uses() -> None:
    def twice(a: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.fft.fft(a, axis=0), jnp.fft.ifft(a, axis=0)

    a = normal(16, 16) + 1j
    plan = pt.plan(twice, MESH, a).tile("a", 0, "data")
    assert plan.counts()["all_gather"] == 1
    assert plan.check(a) <= BOUND


# --- conflicts -----------------------------------------------------------------------------------------------------------


def attention(x: jax.Array, wq: jax.Array, wk: jax.Array, wv: jax.Array) -> jax.Array:
    """Causal attention of one sequence."""
    q, k, v = (pt.tag(jnp.einsum("sd,dhe->hse", x, w), name) for name, w in (("q", wq), ("k", wk), ("v", wv)))
    scores = jnp.einsum("hse,hte->hst", q, k)
    masked = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool))[None], scores, -1e9)
    return jnp.einsum("hst,hte->she", jax.nn.softmax(masked), v)


WEIGHTS = normal(128, 32), normal(32, 4, 8), normal(32, 4, 8) + 0.1, normal(32, 4, 8) - 0.1


def test_keys_and_values_are_gathered_before_the_scores_of_a_tiled_sequence() -> None:
    tiled = pt.plan(attention, MESH, *WEIGHTS).tile("x", 0, "data")
    assert tiled.conflicts
    plan = tiled.apply(pt.Resolve())
    assert plan.trace == "replicate('k', 'data')\ntile('x', 0, 'data')\nreplicate('v', 'data')"
    assert sent(plan, *WEIGHTS) == {"all_gather": 2}
    assert plan.bytes_per_device() == 2 * 4 * (128 * 4 * 8) * 7 / 8
    whole = pt.plan(attention, MESH, *WEIGHTS).flops_per_device()
    assert plan.flops_per_device().known < whole.known / 7


def test_a_resolved_plan_is_replayed_as_it_is() -> None:
    plan = pt.plan(attention, MESH, *WEIGHTS).tile("x", 0, "data").apply(pt.Resolve())
    again = pt.replay(attention, MESH, plan.trace, *WEIGHTS)
    assert again.trace == plan.trace and again.layout() == plan.layout() and again.counts() == plan.counts()


def test_where_a_conflict_stood_a_value_is_resharded_by_its_shortest_way() -> None:
    a = normal(64, 64)
    plan = pt.plan(lambda a: a + a.T, MESH, a).tile("a", 0, "data").apply(pt.Resolve())
    assert sent(plan, a) == {"all_to_all": 1}
    assert plan.bytes_per_device() == 64 * 8 * 4 * 7 / 8


def test_a_conflict_says_what_each_way_out_receives_and_computes() -> None:
    (conflict,) = pt.plan(lambda a: a + a.T, MESH, normal(64, 64)).tile("a", 0, "data").conflicts
    assert list(map(str, conflict.resolutions)) == [
        "tile('result', 0, 'data'): a device then receives 1.75 KiB, computes 512 FLOP and stores 8.00 KiB",
        "replicate('transpose#0', 'data'): a device then receives 14.0 KiB, computes 512 FLOP and stores 22.0 KiB",
    ]


def test_a_plan_with_open_conflicts_says_so() -> None:
    plan = pt.plan(lambda a: a + a.T, MESH, normal(64, 64)).tile("a", 0, "data")
    with pytest.warns(
        pt.ConflictWarning, match=r"open conflicts: `add` at .*Each device of `data` runs it in full.*pt.Resolve"
    ):
        plan.compile()
    assert "a plan with open conflicts: `add`" in repr(plan)
    with pytest.warns(pt.ConflictWarning, match="open conflicts"):
        pt.jit(lambda a: a + a.T, mesh=MESH, tactics=[pt.Tile({"a": 0}, "data")])(normal(64, 64))


def test_a_plan_without_conflicts_is_left_as_it_is_by_resolve() -> None:
    plan = pt.plan(lambda a: 2 * a, MESH, normal(64, 64)).tile("a", 0, "data")
    assert plan.apply(pt.Resolve()).trace == plan.trace


# --- Megatron ------------------------------------------------------------------------------------------------------------


def test_megatron_tiles_stacked_layers_like_single_ones() -> None:
    def stack(layers: Tree, x: jax.Array) -> jax.Array:
        return lax.scan(lambda h, layer: (jnp.tanh(h @ layer["up"]) @ layer["down"], None), x, layers)[0]

    args = {"up": normal(6, 16, 32), "down": normal(6, 32, 16)}, normal(8, 16)
    plan = pt.plan(stack, MESH, *args).apply(pt.Megatron("data", column="layers/up", row="layers/down"))
    assert plan.layout("layers/*") == {"layers/up": "f32[6, 16, data*4]", "layers/down": "f32[6, data*4, 16]"}
    assert sent(plan, *args) == {"all_reduce": 6}


def test_fsdp_tiles_a_dim_that_ops_read_row_by_row_last() -> None:
    """A convolution of four taps, written with slices: each tap's gradient would be summed by itself."""

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        padded = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
        out = sum(padded[:, tap : tap + x.shape[1]] * params["conv"][tap][None, None] for tap in range(4))
        return jnp.mean((out @ params["out"]) ** 2)

    def step(params: Tree, x: jax.Array) -> Tree:
        return jax.tree.map(lambda param, grad: param - 0.1 * grad, params, jax.grad(loss)(params, x))

    args = {"conv": normal(4, 256), "out": normal(256, 64)}, normal(16, 32, 256)
    plan = pt.plan(step, pt.Mesh(data=4, model=2), *args)
    plan = plan.apply(pt.DataParallel("data", inputs="x"), pt.Tile({"params/out": 0}, "model"), pt.FSDP("data"))
    assert plan.layout("params/conv") == {"params/conv": "f32[4, model*data*32]"}
    assert plan.bytes_per_device() <= 109_568
    sent(plan, *args)
    # It is the last choice, and not none.
    alone = pt.plan(lambda params, x: {"w": params["w"] - params["w"][:1] * x}, MESH, {"w": normal(8, 6)}, normal(8, 6))
    assert alone.apply(pt.FSDP("data")).layout("params/w") == {"params/w": "f32[data, 6]"}


# --- names ---------------------------------------------------------------------------------------------------------------


def test_a_collective_names_the_parameter_that_it_gathers() -> None:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        def layer(h: jax.Array, w: jax.Array) -> Any:
            return jnp.tanh(h @ w.astype(jnp.float32)), None

        return jnp.mean(lax.scan(jax.checkpoint(layer), x, params["w"].transpose(0, 2, 1))[0] ** 2)

    args = {"w": normal(6, 16, 16)}, normal(16, 16)
    tactics = [pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params")]
    plan = pt.plan(jax.grad(loss), MESH, *args).apply(*tactics)
    gathers = [each for each in plan.collectives() if each.kind == "all_gather"]
    assert {each.value for each in gathers} == {"params/w"} and {each.times for each in gathers} == {6}
    assert any("transpose(jvp" in str(each) for each in gathers)


def test_a_gather_waits_for_the_nearest_value_that_is_stored_in_any_case() -> None:
    """The scaled value between the two products could be computed inside of the second one."""

    def loss(w: Any, x: Any) -> Any:
        return jnp.tanh((x @ w) * 0.5 + 1.0) @ w

    plan = pt.plan(loss, MESH, normal(64, 64), normal(64, 64))
    plan = plan.apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="w"))
    producers = [plan.source.program.producer[move.anchor] for move in plan.decisions.moves if move.anchor >= 0]
    assert [plan.source.program.nodes[number].op_name for number in producers] == ["dot_general"]
    assert plan.check(normal(64, 64), normal(64, 64)) < 1e-4
