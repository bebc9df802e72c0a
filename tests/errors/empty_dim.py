"""A dim without elements."""

import jax
import numpy as np

import partita as pt


def double(x: jax.Array) -> jax.Array:
    return 2 * x


plan = pt.plan(double, pt.Mesh(data=4), np.ones((0, 8), np.float32))
plan.tile("x", 0, "data")
