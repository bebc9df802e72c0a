"""A static argument without a hash."""

import jax
import numpy as np

import partita as pt


def step(x: jax.Array, sizes: list[int]) -> jax.Array:
    return x.reshape(sizes)


pt.plan(step, pt.Mesh(data=4), np.ones(8, np.float32), [4, 2], static_argnames=("sizes",))
