"""Windows in space: the exact collectives and bytes of convolutions, pools, stencils and shifts, and their results.

A device gets the rows beyond its block from its neighbours by permutes. Nothing is gathered, forward or backward.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from drawn_windows import Program, programs
from generated import examples
from hypothesis import given, strategies as st
from jax import lax
from lowered import interpreted, lowers_from_its_text
from window_cases import (
    BF16,
    CASES,
    F32,
    KERNEL,
    MESH,
    ROWS,
    SEQUENCE,
    Function,
    agree,
    arguments,
    conv,
    conv_2d,
    gradient,
    permutes,
    planned,
    sends,
    two_convs,
)

import partita as pt
from partita.compiler.api.plan import Plan
from partita.rewrites.decide import price


@pytest.mark.parametrize("name", CASES)
def test_a_window_sends_its_halo_and_no_more(name: str) -> None:
    case = CASES[name]
    args = arguments(case.shapes)
    plan = planned(case, case.function, args)
    assert sends(plan) == (case.forward, case.bytes)
    lowers_from_its_text(plan)
    agree(plan, case.function, args)


@pytest.mark.parametrize("name", [name for name in CASES if "17 rows" not in name])
@pytest.mark.parametrize("mesh", [pt.Mesh(a=4, b=2), pt.Mesh(a=2, b=4)], ids=str)
def test_two_axes_hold_windows_as_one_axis_does(name: str, mesh: pt.Mesh) -> None:
    case = CASES[name]
    args, steps = arguments(case.shapes), [(case.function, case.forward, case.bytes)]
    if case.backward is not None:
        steps.append((gradient(case.function, len(case.shapes)), case.backward, case.backward_bytes))
    for function, *least in steps:
        plan = pt.plan(function, mesh, *args)
        plan = plan.widen(case.widen) if case.widen else plan
        for axis in plan.mesh:
            plan = plan.tile(plan.arguments()[0], case.dim, axis, padded=case.padded)
        assert [*sends(plan)] == least


@pytest.mark.parametrize("name", ["a trip of a loop with differences", "conv of three rows", "stencil, widened", "roll by 9"])
def test_two_axes_hold_windows_on_devices(name: str) -> None:
    case = CASES[name]
    args = arguments(case.shapes)
    for function in (case.function, gradient(case.function, len(args))):
        for mesh in (pt.Mesh(a=4, b=2), pt.Mesh(a=2, b=4), pt.Mesh(a=2, b=2, c=2)):
            plan = pt.plan(function, mesh, *args)
            plan = plan.widen(case.widen) if case.widen else plan
            for axis in mesh:
                plan = plan.tile(plan.arguments()[0], case.dim, axis)
            lowers_from_its_text(plan)
            agree(plan, function, args)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.backward is not None])
def test_the_backward_of_a_window_sends_its_halo_and_no_more(name: str) -> None:
    case = CASES[name]
    args, function = arguments(case.shapes), gradient(case.function, len(case.shapes))
    plan = planned(case, function, args)
    assert sends(plan) == (case.backward, case.backward_bytes)
    agree(plan, function, args)


# Padded, the one row that is mirrored at either end is a sum over devices.
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.padded and "mirrors" not in name])
def test_padding_that_nothing_needs_sends_no_more(name: str) -> None:
    case = CASES[name]
    args, functions = arguments(case.shapes), [(case.function, case.bytes)]
    if case.backward is not None:
        functions.append((gradient(case.function, len(case.shapes)), case.backward_bytes))
    for function, most in functions:
        plan = pt.plan(function, MESH, *args)
        plan = plan.widen(case.widen) if case.widen else plan
        assert plan.tile(plan.arguments()[0], case.dim, "data", padded=True).bytes_per_device() <= most


@pytest.mark.parametrize("scan", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp])
def test_scans_of_rows_that_begin_elsewhere(scan: Callable[..., Any]) -> None:
    """Rows before a block, and after it, count for nothing in a scan, and are zeros for the op that reads it."""
    args = np.random.default_rng(0).uniform(0.5, 1.5, (64, 2)).astype(F32)
    for rows, backwards in product((slice(1, None), slice(1, -1), slice(3, -2)), (False, True)):

        def scanned(x: Any, rows: slice = rows, backwards: bool = backwards) -> Any:
            return (jnp.diff(scan(x[rows], 0, reverse=backwards), axis=0) ** 2).sum(0)

        plan = pt.plan(scanned, MESH, args).tile("x", 0, "data")
        assert sends(plan)[0] == permutes(1, all_gather=1, all_reduce=1)
        assert not (gap := disagreement(interpreted(plan, [args]), [scanned(args)])), gap


@pytest.mark.parametrize(
    "name", ["conv of three rows", "transposed conv", "two convs, widened", "stencil", "roll by 1", "mean pool of 3 x 3"]
)
def test_halves_are_sent_as_halves(name: str) -> None:
    case = CASES[name]
    args = arguments(case.shapes, BF16)
    plan = planned(case, case.function, args)
    assert sends(plan) == (case.forward, case.bytes // 2)
    agree(plan, case.function, args)
    if case.backward is not None:
        function = gradient(case.function, len(case.shapes))
        plan = planned(case, function, args)
        assert sends(plan) == (case.backward, case.backward_bytes // 2)
        agree(plan, function, args)


def test_an_image_on_two_axes_gets_its_corners_too() -> None:
    """A device has 4 x 8 pixels of 3 channels: it gets 2 rows of 8, and then a column of 6.

    Of two devices along an axis, each is the neighbour of the other: one permute is enough.
    """
    args = arguments(((1, 16, 16, 3), (3, 3, 3, 4)))
    for function, wanted in ((conv_2d, permutes(3)), (gradient(conv_2d, 2), permutes(6, all_reduce=1))):
        plan = pt.plan(function, pt.Mesh(rows=4, columns=2), *args)
        image = plan.arguments()[0]
        plan = plan.tile(image, 1, "rows").tile(image, 2, "columns")
        assert sends(plan)[0] == wanted
        agree(plan, function, args)
    plan = pt.plan(conv_2d, pt.Mesh(rows=4, columns=2), *args).tile("x", 1, "rows").tile("x", 2, "columns")
    assert plan.bytes_per_device() == 264


def test_widening_exchanges_once_and_its_plan_says_so() -> None:
    args = arguments((SEQUENCE, KERNEL, KERNEL))
    plan = pt.plan(two_convs, MESH, *args)
    wide = plan.apply(pt.Widen("h1"), pt.Tile({"x": 1}, "data"))
    assert "h1: f32[2, win<8,10,1,1>(data) of 64, 4]" in wide.explain("h1")
    assert "permute: 4 --> 2" in str(wide.diff(plan.tile("x", 1, "data")))
    again = pt.replay(two_convs, MESH, wide.trace, *args)
    assert sends(again) == sends(wide) == (permutes(2), 128)


def test_widening_leaves_other_axes_alone() -> None:
    args = arguments(((8, 64, 4), KERNEL, KERNEL))
    plan = pt.plan(two_convs, pt.Mesh(batch=2, rows=4), *args).tile("x", 0, "batch").widen("h1").tile("x", 1, "rows")
    assert sends(plan)[0] == permutes(2)
    agree(plan, two_convs, args)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap", "constant"])
def test_any_padding_of_a_placed_dim(mode: str) -> None:
    """`jnp.pad` joins empty arrays to its edges, which no device has a part of."""

    def function(x: Any) -> Any:
        return jnp.pad(x, ((2, 3), (0, 0)), mode=mode).sum(0)

    args = arguments((ROWS,))
    agree(pt.plan(function, MESH, *args).tile("x", 0, "data", padded=True), function, args)


@pytest.mark.parametrize(("after", "sent"), [(lambda x: x, 3), (lambda x: x * 2, 8)], ids=["returned", "read and returned"])
def test_a_padded_array_is_tiled_at_the_boundary(after: Function, sent: int) -> None:
    """If ops read it, a device holds windows and cuts its block out of them."""

    def function(x: Any) -> Any:
        return after(jnp.pad(x, ((4, 4), (0, 0))))

    args = arguments((ROWS,))
    plan = pt.plan(function, MESH, *args).tile("x", 0, "data")
    assert plan.layout("result") == {"result": "f32[data*9, 4]"}
    assert plan.counts()["all_gather"] == 0 and plan.bytes_per_device() == sent * 4 * 4
    agree(plan, function, args)


EMPTY: dict[str, Function] = {
    "joined": lambda x: jnp.concatenate([x, x[:0]]),
    "rolled by nothing": lambda x: jnp.roll(x, 0, 0),
    "padded": lambda x: jnp.pad(jnp.sin(x[:0]), ((4, 60), (0, 0))) + x,
    "reshaped": lambda x: x[:, :0].reshape(0, 5).sum() + x.sum(),
    "windows of zeros": lambda x: lax.reduce_window(x[:0], np.float32(0), lax.add, (2, 1), (1, 1), ((2, 2), (0, 0))) + x[:3],
    "all taken away": lambda x: lax.pad(x, np.float32(0), ((-32, -32, 0), (0, 0, 0))),
    "no window": lambda x: lax.reduce_window(x, np.float32(0), lax.add, (65, 1), (1, 1), "VALID"),
}


@pytest.mark.parametrize("what", EMPTY)
def test_arrays_without_elements_are_whole(what: str) -> None:
    args = arguments((ROWS,))
    plan = pt.plan(EMPTY[what], MESH, *args).tile("x", 0, "data", padded=True)
    assert all(" (0): " not in str(stop) for stop in plan.blocked)
    agree(plan, EMPTY[what], args)


# --- what cannot be -------------------------------------------------------------------------------------------------


def convs() -> Plan:
    return pt.plan(two_convs, MESH, *arguments((SEQUENCE, KERNEL, KERNEL)))


BAD: dict[str, tuple[Callable[[], Plan], str]] = {
    "no such value": (lambda: convs().widen("h2"), "did you mean `h1`"),
    "not a name": (lambda: convs().apply(pt.Widen(3)), "must be a string, got 3"),  # pyright: ignore[reportArgumentType]
    "an argument": (lambda: convs().widen("x"), "`x` cannot be widened: it is an argument"),
    "a result": (lambda: convs().widen("result"), "`result` cannot be widened: no op reads it through a window"),
    "tiled before": (
        lambda: convs().tile("x", 1, "data").widen("h1"),
        r"`h1` cannot be widened: its dim 1 is on `data` already \(f32\[2, data\*8, 4\]\), by tile\('x', 1, 'data'\)",
    ),
    "uneven": (
        lambda: pt.plan(conv, MESH, *arguments(((2, 17, 4), KERNEL))).tile("x", 1, "data"),
        "17 elements, which do not divide over `data` .8 devices.(.|\n)*padded=True",
    ),
    "a result without elements": (
        lambda: pt.plan(EMPTY["no window"], MESH, *arguments((ROWS,))).tile("result", 0, "data", padded=True),
        "`result` cannot be tiled: its dim 0 has no elements",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_has_a_clear_error(what: str) -> None:
    plan, message = BAD[what]
    with pytest.raises(pt.Error, match=message) as caught:
        plan()
    assert "help: " in str(caught.value)


def test_an_error_leaves_the_plan_as_it_was() -> None:
    plan = convs().tile("x", 1, "data")
    before = plan.layout("**"), plan.trace, str(plan.ir())
    with pytest.raises(pt.Error):
        plan.widen("h1")
    assert (plan.layout("**"), plan.trace, str(plan.ir())) == before


def test_a_window_wider_than_the_range_gathers_it() -> None:
    args = arguments((SEQUENCE, (127, 4, 4)))
    plan = pt.plan(conv, MESH, *args).tile("x", 1, "data")
    assert sends(plan) == ({"all_gather": 1}, 2 * 56 * 4 * 4)
    agree(plan, conv, args)


def test_a_dim_that_an_op_wants_whole_is_listed() -> None:
    def function(x: Any) -> Any:
        return jnp.argsort(x, 1)

    args = arguments((SEQUENCE,))
    plan = pt.plan(function, MESH, *args).tile("x", 1, "data")
    assert {stop.op for stop in plan.blocked} == {"sort"}
    agree(plan, function, args)


@pytest.mark.parametrize("mesh", [MESH, pt.Mesh(a=4, b=2)], ids=str)
def test_a_net_of_which_rows_are_left_is_trained_in_space(mesh: pt.Mesh) -> None:
    """Two convolutions and pools without padding: 128 rows, then 124, 62, 58 and 29. Only rims and gradients are sent."""

    def net(p: Any, x: Any) -> Any:
        for w, fold, unit in ((p["v"], lax.max, -np.inf), (p["w"], lax.add, 0.0)):
            x = jnp.tanh(lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            x = lax.reduce_window(x, np.float32(unit), fold, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.square(x.mean((1, 2)) @ p["out"]).mean()

    def step(p: Any, x: Any) -> Any:
        return jax.tree.map(lambda each, g: each - 0.1 * g, p, jax.grad(net)(p, x))

    v, w, out, x = arguments(((5, 5, 3, 6), (5, 5, 6, 8), (8, 4), (2, 128, 32, 3)))
    args = ({"v": v, "w": w, "out": out}, x)
    whole = plan = pt.plan(step, mesh, *args)
    for axis in mesh:
        plan = plan.tile("x", 1, axis)
    assert not plan.blocked and not plan.conflicts
    assert plan.expect(all_gather=0, all_to_all=0, reduce_scatter=0).check(*args) < 2e-4
    assert 7.5 < whole.flops_per_device().known / plan.flops_per_device().known <= 8


# --- any windows ----------------------------------------------------------------------------------------------------

ONE_AXIS = [pt.Mesh(data=size) for size in (2, 3, 5, 7, 8)]
TWO_AXES = [pt.Mesh(a=2, b=2), pt.Mesh(a=2, b=3), pt.Mesh(a=3, b=2), pt.Mesh(a=4, b=2), pt.Mesh(a=2, b=4)]
MESHES = st.sampled_from([*ONE_AXIS, *TWO_AXES])


def drawn(program: Program, mesh: pt.Mesh, widen: bool, function: Function) -> Plan:
    """The plan of the program, with its rows over all axes of the mesh."""
    plan = pt.plan(function, mesh, program.arg())
    if widen and program.tags:
        # Nothing may read the tags through a window; or their windows may be wider than the whole range.
        with allowed("cannot be widened"):
            return over_all(plan.widen(program.tags))
    return over_all(plan)


def over_all(plan: Plan) -> Plan:
    """The plan with the rows of its argument over all axes.

    A second axis is left out if it does not divide padded rows, or if its blocks are too short for what is widened.
    """
    first, *others = plan.mesh
    plan = plan.tile(plan.arguments()[0], 0, first, padded=True)
    for axis in others:
        with allowed("do not divide", "cannot be widened"):
            plan = plan.tile(plan.arguments()[0], 0, axis)
    return plan


@contextmanager
def allowed(*expected: str) -> Generator[None]:
    """Lets an error pass by if it says one of these."""
    try:
        yield
    except pt.Error as error:
        assert any(each in error.title for each in expected)


@examples(40)
@given(programs(), MESHES, st.booleans())
def test_any_windows_in_a_row(program: Program, mesh: pt.Mesh, widen: bool) -> None:
    args = [program.arg()]
    found = interpreted(drawn(program, mesh, widen, program), args)
    assert not (gap := disagreement(found, [jax.jit(program)(*args)])), gap


@examples(5)
@given(programs(), MESHES, st.booleans())
def test_any_windows_in_a_row_on_devices(program: Program, mesh: pt.Mesh, widen: bool) -> None:
    agree(drawn(program, mesh, widen, program), program, [program.arg()])


@examples(12)
@given(programs(2).filter(lambda program: program.has_gradient), MESHES, st.booleans())
def test_the_gradient_of_any_windows(program: Program, mesh: pt.Mesh, widen: bool) -> None:
    args, function = [program.arg()], gradient(program, 1)
    found = interpreted(drawn(program, mesh, widen, function), args)
    assert not (gap := disagreement(found, jax.tree.leaves(jax.jit(function)(*args)))), gap


# --- what a review found --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.tanh(pt.tag(x[1:] - x[:-1], "d")).sum(),
        lambda x: jnp.tanh(pt.tag(x[2:-3] * 2, "d")).sum(),
        lambda x: jnp.cumsum(pt.tag(jnp.sin(x[1:]), "d"), 0).sum(0),
    ],
)
def test_an_axis_that_leaves_windows_leaves_the_others_all_rows(function: Function) -> None:
    args = arguments(((64, 8),))
    plan = pt.plan(function, pt.Mesh(a=4, b=2), *args).tile("x", 0, "a").tile("x", 0, "b").tile("d", 1, "a")
    agree(plan, function, args)


def test_windows_that_another_axis_splits_are_slices_in_the_text() -> None:
    def sums(x: Any) -> Any:
        return jnp.cumsum(jnp.pad(x, ((2, 3), (0, 0))), 0)

    args = arguments(((17, 4),))
    plan = pt.plan(sums, pt.Mesh(a=3, b=2), *args).tile("x", 0, "a", padded=True).tile("x", 0, "b", padded=True)
    lowers_from_its_text(plan)
    agree(plan, sums, args)


@pytest.mark.parametrize("scan", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp])
@pytest.mark.parametrize("mesh", [pt.Mesh(data=8), pt.Mesh(a=2, b=4)], ids=str)
def test_scans_of_rows_that_not_all_devices_have(scan: Callable[..., Any], mesh: pt.Mesh) -> None:
    x = np.arange(1, 9, dtype=np.float32) / 4
    for begin, end, reverse in [(1, 8, False), (3, 6, False), (2, 6, True), (0, 5, True), (6, 8, False)]:

        def scanned(x: Any, begin: int = begin, end: int = end, reverse: bool = reverse) -> Any:
            return scan(-x[begin:end] if scan is lax.cummax else x[begin:end], reverse=reverse)

        plan = over_all(pt.plan(scanned, mesh, x))
        assert not (gap := disagreement(interpreted(plan, [x]), [jax.jit(scanned)(x)])), gap


# --- recursions by halves -------------------------------------------------------------------------------------------


def recurrence(a: Any, b: Any) -> Any:
    return lax.associative_scan(lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1]), (a, b))[1]


@pytest.mark.parametrize(("function", "most"), [(recurrence, 12_288), (gradient(recurrence, 2), 40_960)], ids=["", "gradient"])
def test_a_recursion_by_halves_exchanges_a_row_on_each_level(
    function: Function, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a level adds its first row in front: a slice of one row, which stays on the device that has it."""
    monkeypatch.setattr(price, "START", 0)
    args = [np.asarray(jax.nn.sigmoid(x)) for x in arguments(((4096, 64), (4096, 64)))]
    first, second = (plan := pt.plan(function, MESH, *args)).arguments()
    plan = plan.tile(first, 0, "data").tile(second, 0, "data")
    assert plan.bytes_per_device() <= most
    agree(plan, function, args)


@examples(4)
@given(st.integers(1, 5).map(lambda blocks: 8 * blocks), MESHES, st.booleans())
def test_a_recursion_by_halves_of_any_rows(rows: int, mesh: pt.Mesh, derived: bool) -> None:
    args = [np.asarray(jax.nn.sigmoid(x)) for x in arguments(((rows, 2), (rows, 2)))]
    function = gradient(recurrence, 2) if derived else recurrence
    agree(over_all(pt.plan(function, mesh, *args)), function, args)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_a_few_rows_in_front_of_others_stay_where_they_are(rows: int) -> None:
    """In blocks of the whole, rows would move that are not among the few, and that nothing reads."""

    def interleaved(x: Any) -> Any:
        even = jnp.concatenate([x[:rows], jnp.sin(x[2 * rows :: 2])])[: x.shape[0] // 2]
        return lax.pad(even, 0.0, [(0, 1, 1), (0, 0, 0)]) + lax.pad(jnp.cos(x[1::2]), 0.0, [(1, 0, 1), (0, 0, 0)])

    args = arguments(((256, 4),))
    plan = pt.plan(interleaved, MESH, *args).tile("x", 0, "data")
    assert sends(plan) == ({}, 0)
    agree(plan, interleaved, args)
