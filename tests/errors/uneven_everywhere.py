"""An extent that does not divide, in a value without another dim on a mesh without another axis."""

import jax
import numpy as np

import partita as pt


def double(x: jax.Array) -> jax.Array:
    return 2 * x


plan = pt.plan(double, pt.Mesh(data=4), np.ones(6, np.float32))
plan.tile("x", 0, "data")
