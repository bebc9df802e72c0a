"""A law that applies nowhere in a program."""

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def mlp(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w1) @ w2


arrays = np.ones((64, 8), np.float32), np.ones((8, 16), np.float32), np.ones((16, 8), np.float32)
pt.plan(mlp, pt.Mesh(data=4), *arrays).rewrite("reassociate")
