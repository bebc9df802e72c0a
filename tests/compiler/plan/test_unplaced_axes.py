"""A collective over an axis on which no tactic has placed anything is on the way of a move, which the move's tactic causes."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt


def recurrence(a: Any, b: Any) -> Any:
    """A linear recurrence along dim 1, in logarithmic depth."""
    return jax.lax.associative_scan(lambda one, next: (one[0] * next[0], one[1] * next[0] + next[1]), (a, b), axis=1)[1].sum()


def by_segment(y: Any) -> Any:
    return jax.ops.segment_sum(pt.tag(y * 2, "t"), jnp.arange(14) % 5, 6)


A = np.ones((16, 64, 8), np.float32)
CASES: dict[str, tuple[Callable[..., Any], pt.Mesh, tuple[Any, ...], pt.Tactic, str]] = {
    "another axis": (
        jax.grad(recurrence, (0, 1)),
        pt.Mesh(data=4, model=2),
        (A, A),
        pt.Tile({"a": 1, "b": 1}, "data"),
        "model",
    ),
    "another axis, of which the mesh has parts": (
        jax.grad(recurrence, (0, 1)),
        pt.Mesh(data=4, model=2).refine(model=(1, 2)),
        (A, A),
        pt.Tile({"a": 1, "b": 1}, "data"),
        "model",
    ),
    "another sub-axis": (
        by_segment,
        pt.Mesh(a=8),
        (np.ones((14, 2), np.float32),),
        pt.Tile({"t": 1}, "a.0:4", held=True, padded=True),
        "a.1:2",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_step_over_an_axis_that_nothing_is_placed_on_has_the_cause_of_its_move(case: str, tmp_path: Path) -> None:
    function, mesh, args, tactic, axis = CASES[case]
    plan = pt.plan(function, mesh, *args).apply(tactic)
    assert axis not in plan.table.axes or not any(plan.table.axes[axis].nodes)
    through = [each for each in plan.collectives() if axis in each.axes]
    assert through and {each.causes for each in through} == {((1, repr(tactic)),)}
    assert all(repr(tactic) in str(plan.explain(each)) for each in through)
    plan.html(tmp_path / "plan.html")
    plan.save(tmp_path / "plan.partita")
    assert str(plan)
