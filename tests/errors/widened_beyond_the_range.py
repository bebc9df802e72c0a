"""Values to widen whose windows are wider than the whole range."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax.numpy as jnp
import numpy as np

import partita as pt


def stencil(u: Any) -> Any:
    for step in range(12):
        padded = jnp.pad(u, 1)
        u = pt.tag(u + 0.1 * (padded[2:] - 2 * u + padded[:-2]), f"u{step}")
    return u


plan = pt.plan(stencil, pt.Mesh(data=8), np.ones(16)).widen([f"u{step}" for step in range(11)])
plan.tile("u", 0, "data")
