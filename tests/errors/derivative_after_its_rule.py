"""A derivative of what is partitioned, where a function inside has a rule of its own."""

# JAX annotates its functions only in part.
# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean(jax.nn.relu(x @ w))


W, X = np.ones((8, 16), np.float32), np.ones((256, 8), np.float32)
partitioned = pt.jit(loss, mesh=pt.Mesh(data=4, model=2), tactics=[pt.Tile({"x": 0}, "data")])
jax.grad(partitioned)(W, X)
