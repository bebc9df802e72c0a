"""A leaf that is not an array."""

import jax
import numpy as np

import partita as pt


def step(x: jax.Array, mode: str) -> jax.Array:
    return x if mode == "train" else -x


pt.plan(step, pt.Mesh(data=4), np.ones(8, np.float32), "train")
