"""A dim of a scalar."""

import jax
import numpy as np

import partita as pt


def scale(x: jax.Array, rate: jax.Array) -> jax.Array:
    return x * rate


plan = pt.plan(scale, pt.Mesh(data=4), np.ones(8, np.float32), np.float32(2))
plan.tile("rate", 0, "data")
