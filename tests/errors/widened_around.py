"""Values to widen whose steps go around the end of the range."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax.numpy as jnp
import numpy as np

import partita as pt


def periodic(u: Any) -> Any:
    for step in range(4):
        u = pt.tag(u + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), f"u{step}")
    return u


plan = pt.plan(periodic, pt.Mesh(data=8), np.ones(128)).widen([f"u{step}" for step in range(3)])
plan.tile("u", 0, "data")
