"""A collective in a function for whole arrays."""

import jax
import numpy as np

import partita as pt


def total(x: jax.Array) -> jax.Array:
    index: jax.Array = jax.lax.axis_index("data")
    return x * index


pt.plan(total, pt.Mesh(data=4), np.ones((8, 8), np.float32))
