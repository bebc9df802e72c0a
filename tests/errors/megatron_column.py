"""A column whose tiled dim is summed over."""

import jax
import numpy as np

import partita as pt


def layer(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return (x @ up) @ down


X, UP, DOWN = (np.ones(shape, np.float32) for shape in ((8, 16), (16, 64), (64, 16)))
pt.plan(layer, pt.Mesh(model=4), X, UP, DOWN).apply(pt.Megatron("model", column={"up": 0}, row={"down": 1}))
