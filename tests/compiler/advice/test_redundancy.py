"""`plan.silent()` ranks what several devices store or do alike by its share of the memory, or of the time of a call."""

# pyright: reportUnknownMemberType=false

from typing import Any

import jax.numpy as jnp
import numpy as np

import partita as pt


def function(x: Any, b: Any) -> Any:
    return x + jnp.tanh(b)


def test_what_all_devices_compute_counts_by_its_share_of_the_time_of_a_call() -> None:
    args = np.ones((8, 8), np.float32), np.ones((1, 8), np.float32)
    plan = pt.plan(function, pt.Mesh(data=8), *args).tile("x", 0, "data")
    assert [each.value for each in plan.silent()] == ["tanh#0", "b"]
    # To gather the result takes far longer than the op does.
    assert [each.value for each in plan.replicate("result", "data").silent()] == ["result", "b", "tanh#0"]


def stencil(u: Any) -> Any:
    for step in range(3):
        v = jnp.pad(u, 1)
        u = pt.tag(u + 0.1 * (v[2:] - 2 * u + v[:-2]), f"u{step}")
    return u


def test_the_rims_of_windows_over_two_axes_are_redundant_as_over_one() -> None:
    for mesh, axes in ((pt.Mesh(data=8), ("data",)), (pt.Mesh(data=4, model=2), ("data", "model"))):
        plan = pt.plan(stencil, mesh, np.ones(64, np.float32)).apply(pt.Widen(["u0", "u1"]), pt.Tile({"u": 0}, axes))
        assert (plan.flops_per_device().known, plan.silent().flops) == (150, 30)


def test_a_value_that_is_widened_twice_changes_nothing() -> None:
    plan = pt.plan(stencil, pt.Mesh(data=8), np.ones(64, np.float32)).widen("u0").widen("u0")
    assert [action.idle for action in plan.actions] == [False, True]
