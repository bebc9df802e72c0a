"""Elements that only move: few rows at known positions, reversed rows, rows of blocks in turn. Exact collectives and bytes."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from lowered import interpreted, lowers_from_its_text

import partita as pt
from partita.compiler.api.plan import Plan

ROW = 16
"""Bytes of a row of four numbers."""
SENT_TO_ALL = ROW * 2 * 7 // 8
"""What an all_reduce of a row over eight devices sends to each."""


@dataclass(frozen=True)
class Case:
    """A function of an array that is tiled on dim 0, and what it sends: itself, and its gradient."""

    function: Callable[[Any], Any]
    forward: dict[str, int]
    bytes: float
    backward: dict[str, int]
    backward_bytes: float
    rows: int = 64
    size: int = 8
    how: dict[str, Any] = field(default_factory=dict[str, Any])
    dtype: Any = np.float32


ONE, TWO = {"all_reduce": 1}, {"all_reduce": 2}
CASES = {
    "the first row": Case(lambda x: x[0] * 2, ONE, SENT_TO_ALL, ONE, SENT_TO_ALL),
    "the last row, bfloat16": Case(lambda x: x[-1] * 2, ONE, SENT_TO_ALL / 2, ONE, SENT_TO_ALL / 2, dtype=jnp.bfloat16),
    "two rows of two blocks": Case(lambda x: x[7:9] * 2, ONE, 2 * SENT_TO_ALL, ONE, 2 * SENT_TO_ALL),
    "rows of three blocks": Case(lambda x: x[3:20:7] * 2, ONE, 3 * SENT_TO_ALL, ONE, 3 * SENT_TO_ALL),
    "sums of rows are one sum": Case(lambda x: x[1:3] + x[40:42], ONE, 2 * SENT_TO_ALL, ONE, 2 * SENT_TO_ALL),
    "a row that all others need": Case(lambda x: x - x[:1], ONE, SENT_TO_ALL, TWO, 2 * SENT_TO_ALL),
    "a row of a padded array": Case(
        lambda x: x[-1] * 2, ONE, SENT_TO_ALL, ONE, SENT_TO_ALL, rows=30, how={"padded": True}
    ),
    "rows of an array in turn": Case(
        lambda x: (x[16:48] * 2).sum(0), {"permute": 4, **ONE}, 8 * ROW + SENT_TO_ALL, {"permute": 4, **ONE},
        8 * ROW + SENT_TO_ALL, how={"block": 2},
    ),
    "rounds of an array in turn": Case(
        lambda x: sum(jnp.split(x, 4)), {"permute": 4}, 8 * ROW, {"permute": 4, "all_gather": 1}, 22 * ROW, how={"block": 2}
    ),
    "reversed": Case(lambda x: jnp.flip(x, 0) * 2, {"permute": 1}, 8 * ROW, {"permute": 2}, 16 * ROW),
    "reversed, bfloat16": Case(lambda x: x[::-1] * 2, {"permute": 1}, 4 * ROW, {"permute": 2}, 8 * ROW, dtype=jnp.bfloat16),
    "reversed over three": Case(lambda x: x[::-1] * 2, {"permute": 1}, 10 * ROW, {"permute": 2}, 20 * ROW, rows=30, size=3),
    "reversed, every other row": Case(lambda x: x[::-2] * 2, {"permute": 1}, 4 * ROW, {"permute": 2}, 8 * ROW),
    "reversed rows of a padded array": Case(
        lambda x: (x[::-1] * jnp.arange(30.0)[:, None]).sum(0), {"permute": 2, **ONE}, 4 * ROW + SENT_TO_ALL,
        {"permute": 4, **ONE, "all_gather": 1}, 8 * ROW + SENT_TO_ALL + 28 * ROW, rows=30, how={"padded": True},
    ),
    "reversed along the other dim": Case(lambda x: x[:, ::-1] * 2, {}, 0, {}, 0),
}  # fmt: skip


def planned(case: Case, function: Callable[[Any], Any], x: Any) -> Plan:
    plan = pt.plan(function, pt.Mesh(data=case.size), x)
    return plan.tile(plan.arguments()[0], 0, "data", **case.how)


def sends(plan: Plan) -> tuple[dict[str, int], float]:
    return {kind: number for kind, number in plan.counts().items() if number}, plan.bytes_per_device()


def agree(plan: Plan, function: Callable[[Any], Any], x: Any) -> None:
    """Compiled, and on all devices in lockstep, the result is that of the unpartitioned function."""
    wanted = jax.tree.leaves(jax.jit(function)(x))
    for found in (plan.compile()(x), interpreted(plan, [x])):
        assert not (gap := disagreement(jax.tree.leaves(found), wanted)), gap


@pytest.mark.parametrize("name", CASES)
def test_what_only_moves_sends_what_it_needs(name: str) -> None:
    case = CASES[name]
    x = np.random.default_rng(0).normal(size=(case.rows, 4)).astype(case.dtype)

    def gradient(x: Any) -> Any:
        return jax.grad(lambda x: jnp.sin(case.function(x)).sum())(x)

    forward, backward = planned(case, case.function, x), planned(case, gradient, x)
    assert (sends(forward), sends(backward)) == ((case.forward, case.bytes), (case.backward, case.backward_bytes))
    lowers_from_its_text(forward)
    agree(forward, case.function, x)
    agree(backward, gradient, x)


def test_a_row_that_is_wanted_in_blocks_is_scattered() -> None:
    x = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
    plan = pt.plan(lambda x: x[5], pt.Mesh(data=8), x).tile("x", 0, "data").tile("result", 0, "data")
    assert sends(plan) == ({"reduce_scatter": 1}, 32 * 4 * 7 // 8)
    agree(plan, lambda x: x[5], x)


def test_the_cotangent_of_a_row_stays_where_the_row_is() -> None:
    def gradient(x: Any) -> Any:
        return jax.grad(lambda x: (2 * x[9]).sum())(x)

    x = np.ones((64, 4), np.float32)
    plan = pt.plan(gradient, pt.Mesh(data=8), x).tile("x", 0, "data").tile("result", 0, "data")
    assert sends(plan) == ({}, 0)
    agree(plan, gradient, x)


def test_rows_that_are_read_from_elsewhere_arrive_bit_by_bit() -> None:
    x = np.full((16, 2), -0.0, np.float32)
    plan = pt.plan(lambda x: x[3], pt.Mesh(data=8), x).tile("x", 0, "data")
    assert "pick" in str(plan.ir()) and np.signbit(np.asarray(plan.compile()(x))).all()


def test_rows_reversed_twice_in_a_row_do_not_move() -> None:
    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    plan = pt.plan(lambda x, y: x[::-1][::-1] * y, pt.Mesh(data=8), x, x).tile(["x", "y"], 0, "data")
    assert sends(plan) == ({}, 0)
    agree_two = disagreement([plan.compile()(x, x)], [x * x])
    assert not agree_two, agree_two
