"""A program with an ordered effect."""

import jax
import numpy as np

import partita as pt


def step(x: jax.Array) -> jax.Array:
    jax.debug.print("{}", x.sum(), ordered=True)
    return x


pt.plan(step, pt.Mesh(data=4), np.ones(8, np.float32))
