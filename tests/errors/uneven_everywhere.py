"""An extent that does not divide, of a value that has no other dim and a mesh that has no other axis."""

import jax
import numpy as np

import partita as pt


def double(x: jax.Array) -> jax.Array:
    return 2 * x


plan = pt.plan(double, pt.Mesh(data=4), np.ones(6, np.float32))
plan.tile("x", 0, "data")
