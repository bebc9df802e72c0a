"""An op between a column and a row that needs its input whole."""

import jax
import numpy as np
from jax import lax

import partita as pt


def layer(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return lax.sort(x @ up) @ down


X, UP, DOWN = (np.ones(shape, np.float32) for shape in ((8, 16), (16, 64), (64, 16)))
pt.plan(layer, pt.Mesh(model=4), X, UP, DOWN).apply(pt.Megatron("model", column="up", row="down"))
