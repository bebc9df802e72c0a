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
