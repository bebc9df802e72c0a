"""Where propagation stops, `plan.blocked` says what runs in full, its flops and bytes, and a cure that works."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from calls import CALLS, Call
from figures import Figures
from jax import lax

import partita as pt
from partita.compiler.advice.open_stops import is_open
from partita.compiler.advice.stops import Stop, received_for
from partita.compiler.api.plan import Plan
from partita.dialects.ground.amounts import of_bytes

MESH = pt.Mesh(data=8)
X, W, V = np.ones((64, 16), np.float32), np.ones((16, 32), np.float32), np.ones(64, np.float32)


def sums(x: Any, width: int, apart: int = 1) -> Any:
    """The sums of so many rows, where any of them are there: of more rows than `x` has."""
    ones, around = (1,) * (x.ndim - 1), (width - 1) * apart
    padding = [(around, around), *((0, 0) for _ in ones)]
    return lax.reduce_window(x, np.float32(0), lax.add, (width, *ones), (1, *ones), padding, window_dilation=(apart, *ones))


def gathered(plan: Plan, stop: Stop) -> int:
    """The bytes of the collectives that the plan lists for the value, over the axis, for the op."""
    found = [each for each in plan.collectives() if (each.value, each.use) == (stop.value, stop.op) and stop.axis in each.axes]
    return sum(each.bytes * each.times for each in found)


# --- costs ----------------------------------------------------------------------------------------------------------


def test_an_op_that_moves_costs_what_the_ops_after_it_compute() -> None:
    plan = pt.plan(lambda x, w: jnp.argsort(x, 0) @ w, MESH, X, W).tile("x", 0, "data")
    (stop,) = plan.blocked
    assert (stop.runs, stop.flops.known, stop.bytes) == (("sort", "dot_general"), 2 * 64 * 32 * 16, 64 * 16 * 4 * 7 // 8)
    assert stop.bytes == gathered(plan, stop) == plan.bytes_per_device()


def test_stops_are_listed_by_time_so_that_flops_count_beside_bytes() -> None:
    def function(x: Any, y: Any, w: Any) -> Any:
        return jnp.abs(jnp.fft.fft(x)) @ w, jnp.abs(jnp.fft.fft(y))

    args = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((2048,), (4096,), (2048, 65536))]
    first, second = pt.plan(function, MESH, *args).tile("x", 0, "data").tile("y", 0, "data").blocked
    assert (first.runs, second.runs) == (("fft", "abs", "dot_general"), ("fft", "abs"))
    assert first.bytes < second.bytes and first.price > second.price


def test_of_several_cures_that_share_the_work_the_cheapest_is_said() -> None:
    plan = pt.plan(lambda x: jnp.pad(x, ((9, 0), (0, 0))) * 2, MESH, np.ones((24, 64), np.float32)).tile("x", 0, "data")
    (stop,) = plan.blocked
    padded = plan.start(plan.source.traced, plan.mesh).tile("x", 0, "data", padded=True)
    assert str(stop.cure) == "tile another dim here: plan.tile('pad#0', 1, 'data')"
    assert stop.cure is not None and stop.cure.bytes == 24 * 64 * 4 // 8 * 7 // 8 < padded.bytes_per_device()


def test_the_text_says_costs_and_a_cure() -> None:
    (stop,) = pt.plan(lambda x, w: jnp.argsort(x, 0) @ w, MESH, X, W).tile("x", 0, "data").blocked
    assert str(stop).splitlines()[1:] == [
        "  each device runs `sort`, and then `dot_general`, in full: 65.5 kFLOP instead of 8.19 kFLOP, and those of `sort`,"
        " which are unknown; it receives 3.50 KiB for that",
        "  help: tile another dim here: plan.tile('sort#0', 1, 'data')",
        "    a device then receives 14.4 KiB in a call and computes 8.19 kFLOP, and those of `sort`, which are unknown",
    ]


def test_ops_that_are_placed_again_are_not_counted() -> None:
    plan = pt.plan(lambda x: jnp.exp(jnp.argsort(x, 0)) + x, MESH, X).tile("x", 0, "data")
    assert all((stop.runs, stop.flops.known) == (("sort",), 0) for stop in plan.blocked)
    assert plan.flops_per_device().known == 2 * 64 * 16 // 8


def test_an_op_counts_for_its_first_stop() -> None:
    plan = pt.plan(lambda x, y: jnp.exp(jnp.argsort(x, 0)) + jnp.argsort(y, 0), MESH, X, X).tile(["x", "y"], 0, "data")
    first, second = plan.blocked
    assert (first.runs, second.runs) == (("sort", "exp", "add"), ("sort",))
    assert first.flops.known == 2 * 64 * 16 == plan.flops_per_device().known
    assert (first.bytes, second.bytes) == (3584, 3584) and plan.bytes_per_device() == 7168


def test_a_loop_counts_by_its_trips() -> None:
    def function(x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.argsort(jnp.sin(c), 0).astype(c.dtype), None), x, None, length=5)[0]

    plan = pt.plan(function, MESH, X).tile("x", 0, "data").tile("sin#0", 0, "data")
    stop, *others = plan.blocked
    assert stop.bytes == gathered(plan, stop) == 5 * 3584 and not any(each.bytes for each in others)


def test_another_axis_divides_what_runs_in_full() -> None:
    plan = (
        pt.plan(lambda x, w: jnp.argsort(x, 0) @ w, pt.Mesh(data=4, model=2), X, W).tile("w", 1, "model").tile("x", 0, "data")
    )
    (stop,) = plan.blocked
    assert (stop.axis, stop.flops.known) == ("data", 2 * 64 * 32 * 16 // 2)


def test_two_windows_of_a_value_are_one_stop() -> None:
    plan = pt.plan(lambda x: sums(x, 3) + sums(x, 2, apart=2), MESH, X).tile("x", 0, "data")
    (stop,) = plan.blocked
    # Both read the one array that is gathered.
    assert stop.bytes == plan.bytes_per_device() == 3584 and stop.flops.known == (3 + 2 + 1) * 66 * 16


def test_a_result_that_is_wanted_in_parts_receives_nothing() -> None:
    plan = pt.plan(lambda x: jnp.argsort(x, 0), MESH, X).tile("result", 0, "data")
    (stop,) = plan.blocked
    assert stop.bytes == 0 == plan.bytes_per_device()


def test_a_stop_at_what_a_constant_makes_receives_nothing() -> None:
    """An op without operands is made on each device: it is asked for nothing."""
    for function, x in (
        (lambda x: x + jnp.arange(48).reshape(4, 12), np.ones((4, 12), np.float32)),
        (lambda x: jnp.linalg.lstsq(x + jnp.eye(8, 32), x[:, 0])[0], np.ones((8, 32), np.float32)),
    ):
        for dim in (0, 1):
            plan = pt.plan(function, pt.Mesh(data=2), x).tile("x", dim, "data")
            made = [stop for stop in plan.blocked if not plan.source.program.nodes[stop.first.node].operands]
            assert all(stop.bytes == 0 for stop in made) and str(plan)
    (stop,) = pt.plan(lambda x: x + jnp.arange(48).reshape(4, 12), pt.Mesh(data=2), X[:4, :12]).tile("x", 1, "data").blocked
    assert (stop.op, stop.bytes) == ("iota", 0)


def test_an_op_that_stops_at_both_ends_counts_what_it_receives_once() -> None:
    plan = pt.plan(lambda x, y: jnp.argsort(jnp.sin(x), 0) * y, MESH, X, X).tile(["x", "y"], 0, "data")
    assert {stop.op for stop in plan.blocked} == {"sort"} and len(plan.blocked) > 1
    assert sum(stop.bytes for stop in plan.blocked) == plan.bytes_per_device() == 3584


# --- what stops, and why ---------------------------------------------------------------------------------------------


def test_stops_that_cost_most_come_first() -> None:
    plan = pt.plan(lambda x, y: (sums(y, 3), jnp.exp(sums(x, 3)), jnp.exp(jnp.argsort(x, 0))), MESH, X, X).tile(
        ["x", "y"], 0, "data"
    )
    costs = [(stop.bytes, stop.flops.known) for stop in plan.blocked]
    assert costs == sorted(costs, reverse=True) and len(costs) > 2


def test_a_result_that_does_not_divide_is_named() -> None:
    (stop,) = pt.plan(lambda x: jnp.sin(sums(x, 3)), MESH, V).tile("x", 0, "data").blocked
    assert (stop.extent, stop.reason) == (64, "the result has 66 rows, which 8 devices do not divide")


def test_an_op_that_does_not_take_blocks_in_turn_says_so() -> None:
    plan = pt.plan(lambda x: jnp.cumsum(x, 0), MESH, X).tile("x", 0, "data", block=2)
    (stop,) = plan.blocked
    assert stop.reason == "needs one block on each device"
    assert str(stop.cure) == "have one block on each device: tile('x', 0, 'data') instead of 1: tile('x', 0, 'data', block=2)"
    argument, *_ = plan.collectives()
    assert "for the argument" in str(argument) and argument.why == "the boundary needs one block on each device"
    assert "for the argument: f32[" in str(plan.explain("x"))


def test_a_stop_counts_permutes_that_another_move_counts() -> None:
    plan = pt.plan(lambda x: jnp.concatenate([x[:60], x[4:]]) @ W, MESH, X).tile("x", 0, "data")
    shared = [move for move in plan.decisions.moves if len(move.together) > 1]
    for move in shared:
        assert {received_for(plan, [use]) for use in move.uses} == {move.together[0].path.bytes}
    assert any(not move.path.bytes for move in shared)


# --- cures ----------------------------------------------------------------------------------------------------------

CURES: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "another dim": (lambda x: jnp.exp(jnp.argsort(x, 0)), X, "tile another dim here: plan.tile('sort#0', 1, 'data')"),
    "another dim before one gather": (
        lambda x: jnp.exp(jnp.argsort(jnp.sin(x), 0)),
        X,
        "tile another dim here: plan.tile('sort#0', 1, 'data')",
    ),
    "padding": (
        lambda x: jnp.sin(sums(x, 3)),
        V,
        "have it padded: tile('x', 0, 'data', padded=True) instead of 1: tile('x', 0, 'data')",
    ),
    "sub-axes": (lambda x: x.reshape(4, 4) * 3, V[:16], "split the axis: plan.propagate('data', split=True)"),
    "fewer devices": (
        lambda x: lax.top_k(x, 3),
        V[:16],
        "use fewer devices: tile('x', 0, 'data.0:2') instead of 1: tile('x', 0, 'data')",
    ),
    "one gather": (
        lambda x: jnp.argsort(jnp.sin(x)),
        V,
        "if all of it is needed anyway, gather it once: plan.replicate('sin#0', 'data')",
    ),
    "replicated": (
        lambda x: jnp.argsort(x, 0),
        V,
        "if all of it is needed anyway, keep it replicated: replicate('x', 'data') instead of 1: tile('x', 0, 'data')",
    ),
}
ADVICE: dict[str, tuple[Callable[..., Any], str]] = {
    "a definition": (
        pt.define("host_sum(x)   out[] = @(x[i:])")(lambda x: jnp.sum(x)),
        "if `host_sum` can run in parts along this dim, give it an index in pt.define",
    ),
    "no loop": (
        lambda x: lax.scan(lambda c, r: (c, r * 2), 0, x)[1],
        "if the trips do not depend on each other, write them as jax.vmap instead of a loop",
    ),
}


@pytest.mark.parametrize("what", CURES)
def test_a_cure_fits_its_stop(what: str) -> None:
    function, x, cure = CURES[what]
    (stop,) = blocked(function, x)
    assert str(stop.cure) == cure


@pytest.mark.parametrize("what", ADVICE)
def test_where_no_tactic_helps_a_change_of_the_program_may(what: str) -> None:
    function, advice = ADVICE[what]
    (stop,) = blocked(function, V)
    assert stop.cure is None and stop.helps == [stop.advice] == [advice]


def blocked(function: Callable[..., Any], x: Any) -> list[Stop]:
    plan = pt.plan(function, MESH, x)
    return plan.tile(plan.arguments()[0], 0, "data").blocked


def places(call: Call) -> list[Plan]:
    """The call's program with each dim of each argument placed by itself."""
    plan, found = pt.plan(call.function, MESH, *call.args), list[Plan]()
    for name, value in zip(plan.arguments(), plan.source.program.arguments, strict=True):
        for dim in range(len(plan.source.shape(value))):
            with suppress(pt.Error):
                found.append(plan.tile(name, dim, "data"))
    return found


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_stop_costs_what_the_plan_sends_and_its_cure_works(call: Call, figures: Figures) -> None:
    cured = stops = 0
    for plan in places(call):
        for stop in plan.blocked:
            stops += 1
            assert stop.bytes == gathered(plan, stop), stop
            if (cure := stop.cure) is not None:
                cured += 1
                after = plan.apply(cure)
                assert not is_open(after, stop.first), stop
                assert (after.bytes_per_device(), after.flops_per_device()) == (cure.bytes, cure.flops)
    figures.add("stops of calls that a tactic cures", cured, of=stops)


def test_stops_of_calls_have_cures() -> None:
    found = (stop.cure for call in CALLS for plan in places(call) for stop in plan.blocked)
    assert len(list(islice(filter(None, found), 20))) == 20


def transforms(x: Any) -> Any:
    """Along both dims and back: each transform stops the axis that the one before it lets through."""
    there = jnp.fft.fft(jnp.fft.fft(x, axis=1), axis=0)
    return jnp.fft.ifft(jnp.fft.ifft(there * 2, axis=0), axis=1).real


def selected(x: Any) -> Any:
    """Its sorts are wanted whole: a merge of blocks would receive more."""
    return jnp.argsort(jnp.sin(x))[0] + jnp.argsort(jnp.cos(x))[-1] * jnp.ones((3, 5), int)


@pytest.mark.parametrize(("function", "x"), [(transforms, np.ones((64, 64), np.float32)), (selected, V)])
def test_cures_one_after_another_leave_no_stop(function: Callable[..., Any], x: Any) -> None:
    plan = pt.plan(function, MESH, x).tile("x", 0, "data")
    assert plan.blocked
    for _ in range(4):
        if plan.blocked and (cure := plan.blocked[0].cure) is not None:
            plan = plan.apply(cure)
            assert pt.replay(function, plan.mesh, plan.trace, x).counts() == plan.counts()
    assert not plan.blocked


def layers(ws: Any, x: Any) -> Any:
    for number, w in enumerate(ws):
        with jax.named_scope(f"layer_{number}/mix"):
            x = jnp.tanh(x @ w)
            x = x + jnp.argsort(x, 0).astype(x.dtype)
    return x


def test_stops_of_layers_are_one_row_with_one_cure_that_can_be_pasted() -> None:
    ws = [np.ones((16, 16), np.float32)] * 3
    plan = pt.plan(layers, MESH, ws, X).tile("x", 0, "data")
    first, *_ = repr(plan.blocked).split("`data` (8 devices)")[1:]
    title, _, help, cost = first.strip().splitlines()
    assert title.endswith(" x 3")
    assert help == "  help: tile another dim here: plan.tile('layer_*/mix/sort#0', 1, 'data')"
    pasted = eval(help.partition("here: ")[2], {"plan": plan})
    assert not pasted.blocked and f"receives {of_bytes(pasted.bytes_per_device())}" in cost
    assert all(plan.apply(stop.cure).trace == pasted.trace for stop in plan.blocked if stop.cure is not None)


def test_a_cure_is_of_its_plan() -> None:
    plan = pt.plan(lambda x: jnp.exp(jnp.argsort(x, 0)), MESH, X)
    cure = plan.tile("x", 0, "data").blocked[0].cure
    assert cure is not None
    others = [
        plan,
        pt.plan(lambda x: jnp.exp(jnp.argsort(x, 0)), pt.Mesh(data=4), X).tile("x", 0, "data"),
        pt.plan(lambda x: jnp.exp(jnp.argsort(x, 0)), MESH, np.ones((64, 64), np.float32)).tile("x", 0, "data"),
        pt.plan(lambda x: jnp.cos(jnp.argsort(x, 0)), MESH, X).tile("x", 0, "data"),
    ]
    for other in others:
        with pytest.raises(pt.Error, match="was tried on another plan"):
            other.apply(cure)


def test_a_stop_is_explained_by_whose_claim_it_is() -> None:
    plan = pt.plan(lambda x: jnp.exp(jnp.argsort(x, 0)), MESH, X).tile("x", 0, "data")
    (stop,) = plan.blocked
    explained = plan.explain(stop)
    assert explained.steps[0].tactics == (1,)
    assert "`x` arrives with `data` on dim 0 by 1: tile('x', 0, 'data')" in explained
    with pytest.raises(pt.Error, match="not an open one of this plan"):
        plan.tile("sort#0", 1, "data").explain(stop)


# --- user code ------------------------------------------------------------------------------------------------------


def test_user_code_says_what_it_receives_and_that_it_can_be_defined() -> None:
    def host(x: Any) -> Any:
        return jax.pure_callback(lambda x: np.asarray(x) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    plan = pt.plan(lambda x: host(x) + 1, MESH, X).tile("x", 0, "data")
    (whole,) = plan.whole
    assert whole.bytes == next(each.bytes for each in plan.collectives() if each.kind == "all_gather") == 3584
    assert "what it computes is unknown" in str(whole) and "pt.define(" in whole.cure
    assert plan.flops_per_device().unknown == ("pure_callback",)


def test_an_effect_has_no_cure() -> None:
    def function(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x

    (effect,) = pt.plan(function, MESH, X).tile("x", 0, "data").whole
    assert effect.cure == ""


def test_no_cure_asks_for_padding_that_is_there() -> None:
    plan = pt.plan(lambda x: lax.pad(x, np.float32(0), ((2, 2, 1),)), MESH, np.ones(128, np.float32)).tile(
        "x", 0, "data", padded=True
    )
    assert plan.blocked and not any(str(stop.cure).startswith("have it padded") for stop in plan.blocked)
