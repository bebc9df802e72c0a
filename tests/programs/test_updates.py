"""Updates and reads at positions that are known when the program is traced: exact collectives and bytes, and the results.

An update of a slice reads the part through a window and the array at its own index. So a step of a stencil that is written
with `x.at[1:-1].set(...)` exchanges halos, and nothing else, forward and backward.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from jax import lax
from lowered import interpreted, lowers_from_its_text

import partita as pt
from partita.compiler.api.plan import Plan

F32, BF16 = np.dtype(np.float32), np.dtype(jnp.bfloat16)
Function = Callable[[Any], Any]


def laplacian(u: Any) -> Any:
    return u[2:] - 2 * u[1:-1] + u[:-2]


def explicit(u: Any) -> Any:
    return u.at[1:-1].set(u[1:-1] + 0.25 * laplacian(u))


def added(u: Any) -> Any:
    return u.at[1:-1].add(0.25 * laplacian(u)).at[0].set(1).at[-1].set(0)


def sliced(u: Any) -> Any:
    return lax.dynamic_update_slice(u, u[1:-1] + 0.25 * laplacian(u), (1, 0))


def plane(u: Any) -> Any:
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return u.at[1:-1, 1:-1].set(u[1:-1, 1:-1] + 0.125 * (around - 4 * u[1:-1, 1:-1]))


def red_and_black(u: Any) -> Any:
    u = u.at[::2].multiply(2)
    return u.at[1::2].add(u[::2])


def looped(step: Function) -> Function:
    return lambda u: lax.scan(lambda u, _: (step(u), None), u, None, length=3)[0]


def gradient(function: Function) -> Function:
    return jax.grad(lambda u: jnp.sin(function(u)).sum())


def array(shape: tuple[int, ...] = (64, 4), dtype: Any = F32) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def planned(function: Function, u: Any, size: int = 8, **how: Any) -> Plan:
    plan = pt.plan(function, pt.Mesh(data=size), u)
    return plan.tile(plan.arguments()[0], 0, "data", **how)


def sends(plan: Plan) -> tuple[dict[str, int], int]:
    return {kind: number for kind, number in plan.counts().items() if number}, plan.bytes_per_device()


def agree(plan: Plan, function: Function, u: Any) -> None:
    """Compiled, as a graph and on all devices in lockstep, the results are those of the unpartitioned function."""
    wanted = jax.tree.leaves(jax.jit(function)(u))
    for found in (plan.compile()(u), plan.lower("collective").run(u), interpreted(plan, [u])):
        assert not (gap := disagreement(jax.tree.leaves(found), wanted)), gap


def permutes(number: int) -> dict[str, int]:
    return {"permute": number} if number else {}


@dataclass(frozen=True)
class Case:
    """A function of an array with its rows on `data`: the permutes and the rows that a device gets, forward and backward."""

    function: Function
    forward: int
    rows: int
    backward: int
    rows_back: int
    columns: int = 4


CASES: dict[str, Case] = {
    "a stencil, set": Case(explicit, 2, 2, 4, 4),
    "a stencil, added": Case(added, 2, 2, 4, 4),
    "a stencil, dynamic_update_slice": Case(sliced, 2, 2, 4, 4),
    "a stencil in a scan": Case(looped(explicit), 6, 6, 12, 12),
    "a stencil in a scan, added": Case(looped(added), 6, 6, 12, 12),
    "shifted by one": Case(lambda u: u.at[1:].set(u[:-1]), 1, 1, 2, 2),
    "every other row": Case(red_and_black, 0, 0, 0, 0),
    "every other row in a scan": Case(looped(red_and_black), 0, 0, 0, 0),
    "the first row": Case(lambda u: u.at[0].set(7), 0, 0, 0, 0),
    "the last row, added": Case(lambda u: u.at[-1:].add(7), 0, 0, 0, 0),
    "rows in the middle": Case(lambda u: u.at[11:30].set(7), 0, 0, 0, 0),
    "one element": Case(lambda u: u.at[11, 2].set(7), 0, 0, 0, 0),
    "a column": Case(lambda u: u.at[:, 1].set(u[:, 0]), 0, 0, 0, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_an_update_exchanges_its_halo_and_no_more(name: str) -> None:
    case, u = CASES[name], array()
    plan = planned(case.function, u)
    assert sends(plan) == (permutes(case.forward), case.rows * 16)
    assert plan.layout("result") == {"result": "f32[data*8, 4]"}
    lowers_from_its_text(plan)
    agree(plan, case.function, u)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_an_update_exchanges_its_halo_and_no_more(name: str) -> None:
    case, u = CASES[name], array()
    function = gradient(case.function)
    plan = planned(function, u)
    assert sends(plan) == (permutes(case.backward), case.rows_back * 16)
    agree(plan, function, u)


@pytest.mark.parametrize("step", [explicit, added])
def test_steps_of_updates_are_widened_to_one_exchange(step: Function) -> None:
    def steps(u: Any) -> Any:
        for number in range(8):
            u = pt.tag(step(u), f"u{number}")
        return u

    u = array((128, 4))
    plan = pt.plan(steps, pt.Mesh(data=8), u)
    wide = plan.widen([f"u{number}" for number in range(7)]).tile("u", 0, "data")
    assert sends(plan.tile("u", 0, "data")) == ({"permute": 16}, 16 * 16)
    assert sends(wide) == ({"permute": 2}, 16 * 16)
    assert not disagreement([wide.compile()(u), *interpreted(wide, [u])], [jax.jit(steps)(u)] * 2)


@pytest.mark.parametrize("name", ["a stencil, set", "a stencil, added", "every other row"])
def test_halves_are_sent_as_halves(name: str) -> None:
    case, u = CASES[name], array(dtype=BF16)
    for function, rows in ((case.function, case.rows), (gradient(case.function), case.rows_back)):
        plan = planned(function, u)
        assert plan.bytes_per_device() == rows * 8
        agree(plan, function, u)


def test_a_plane_on_two_axes_exchanges_rows_and_columns() -> None:
    """Two of the four rows and columns of a step move in one permute."""
    u = array((16, 16))
    for function, wanted in ((plane, 3), (gradient(plane), 6), (looped(plane), 9)):
        plan = pt.plan(function, pt.Mesh(rows=4, columns=2), u)
        name = plan.arguments()[0]
        plan = plan.tile(name, 0, "rows").tile(name, 1, "columns")
        assert sends(plan)[0] == permutes(wanted)
        agree(plan, function, u)


@pytest.mark.parametrize("size", [2, 3, 5, 7])
@pytest.mark.parametrize("step", [explicit, added, red_and_black])
def test_rows_that_do_not_divide_are_padded(step: Function, size: int) -> None:
    for rows in (30, 34):
        u = array((rows, 4))
        for function in (step, gradient(looped(step))):
            agree(planned(function, u, size, padded=True), function, u)


def test_other_elements_keep_every_bit() -> None:
    """Adding zero would turn -0.0 into 0.0, and multiplying would change the bits of NaN."""
    u = array()
    u[::3], u[1::3] = -0.0, np.nan
    for function in (lambda u: u.at[2:-2].add(u[2:-2]), lambda u: u.at[1:-1].multiply(u[1:-1])):
        plan = planned(function, u)
        found, wanted = np.asarray(plan.compile()(u)), np.asarray(jax.jit(function)(u))
        np.testing.assert_array_equal(found.view(np.int32)[[0, -1]], wanted.view(np.int32)[[0, -1]])
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
        agree(plan, function, u)


# --- what the positions may be ----------------------------------------------------------------------------------------

MODES = ("clip", "drop", "fill", "promise_in_bounds")
POSITIONS: dict[str, Any] = {
    "inside": (slice(3, 7),),
    "negative": (-2,),
    "steps": (slice(2, 60, 4), slice(None, None, 2)),
    "backwards": (slice(9, 2, -2),),
    "two scalars": (5, 2),
    "a scalar and a step": (slice(None, None, 2), 3),
    "an empty slice": (slice(5, 5),),
    "rows twice": (np.array([3, 3, 4]),),
    "rows in order": (np.array([3, 4, 5]),),
}
OUTSIDE: dict[str, Any] = {"behind": (70,), "before": (-70,), "partly": (np.array([62, 63, 64]),)}
METHODS = ("set", "add", "multiply", "min", "max", "subtract")


@pytest.mark.parametrize("where", [*POSITIONS, *OUTSIDE])
def test_any_positions_in_any_mode(where: str) -> None:
    """An update and a read of what it wrote, in every mode that has a meaning there."""
    at = (POSITIONS | OUTSIDE)[where]

    def function(u: Any) -> Any:
        found: list[Any] = []
        # Beside an axis to differentiate, `promise_in_bounds` has no meaning outside.
        for number, mode in enumerate(MODES if where in POSITIONS else MODES[:3]):
            part = u[at] if where in POSITIONS else 0.5
            found.append(getattr(u.at[at], METHODS[number])(part, mode=mode))
            found.append(u.at[at].get(mode=mode, fill_value=3))
        return found

    u = array()
    found = jax.tree.leaves(planned(function, u).compile()(u))
    assert not (gap := disagreement(found, jax.tree.leaves(jax.jit(function)(u)))), gap


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_update(method: str) -> None:
    def function(u: Any) -> Any:
        return getattr(u.at[1:-1], method)(0.5 * u[:-2])

    u = array()
    plan = planned(function, u)
    assert sends(plan) == (permutes(1), 16)
    agree(plan, function, u)
    assert sends(planned(gradient(function), u))[0].keys() == {"permute"}


@pytest.mark.parametrize("starts", [(3, 0), (-3, 1), (60, 3), (1000, -1000)])
def test_starts_are_clamped(starts: tuple[int, int]) -> None:
    def function(u: Any) -> Any:
        return lax.dynamic_slice(u, starts, (50, 3)), lax.dynamic_update_slice(u, 2 * u[:50, :3], starts)

    u = array()
    plan = planned(function, u, padded=True)
    assert not plan.counts()["all_reduce"]
    assert not (gap := disagreement(interpreted(plan, [u]), jax.tree.leaves(jax.jit(function)(u)))), gap


def ops(function: Function, u: Any) -> set[str]:
    module = pt.plan(function, pt.Mesh(data=8), u).source.traced.module
    return {op.name.removeprefix("lax.") for op in module.walk()}


def test_positions_that_are_computed_are_looked_up() -> None:
    u = array()
    assert "update_slice" in ops(lambda u: u.at[1:-1].set(0), u)
    assert "update_slice" not in ops(lambda u: u.at[u[0, 0].astype(int)].set(0), u)
    assert "update_slice" not in ops(lambda u: u.at[np.array([3, 3, 4])].set(0), u)
    assert "scatter_add" in ops(lambda u: u.at[jnp.zeros(3, int) + 3].add(1), u)


def test_positions_leave_no_ops_behind() -> None:
    assert ops(lambda u: u.at[1:-1].set(2 * u[1:-1]), array()).isdisjoint(("iota", "scatter", "concatenate"))
    assert "iota" not in ops(looped(red_and_black), array())
    read = ops(lambda u: lax.dynamic_slice_in_dim(u, jnp.int32(3) + 2, 50), array())
    assert "slice" in read and "dynamic_slice" not in read


@pytest.mark.parametrize("axes", ["data", "model", ("data", "model")], ids=str)
def test_an_array_counts_once_beside_the_rows_that_several_axes_add_to_it(axes: str | tuple[str, ...]) -> None:
    """Not once for each device of the axes that are not the first."""
    acc, ids, rows = np.ones((4, 3), np.float32), np.arange(16) % 4, np.ones((16, 3), np.float32)
    plan = pt.plan(lambda acc, ids, rows: acc.at[ids].add(rows), pt.Mesh(data=4, model=2), acc, ids, rows)
    plan = plan.tile(["ids", "rows"], 0, axes)
    assert plan.counts()["all_reduce"] == 1 and sum(plan.counts().values()) == 1
    for whole in (interpreted(plan, (acc, ids, rows)), [plan.compile()(acc, ids, rows)]):
        assert disagreement(whole, [np.full((4, 3), 5.0, np.float32)]) == ""
