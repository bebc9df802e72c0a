"""A value in parts, of which an op needs the sum."""

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def normalised(x: jax.Array, w: jax.Array) -> jax.Array:
    h = pt.tag(x @ w, "h")
    return h / jnp.sum(h)


plan = pt.plan(normalised, pt.Mesh(data=4), np.ones((64, 8), np.float32), np.ones((8, 8), np.float32))
plan.rewrite("chunk", at="h", dim=0, trips=4)
