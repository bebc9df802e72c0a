"""A scope that the program does not have, where its values are to be computed again."""

# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    with jax.named_scope("encoder"):
        h = jnp.tanh(x @ w)
    with jax.named_scope("decoder"):
        return jnp.tanh(h @ w).sum()


plan = pt.plan(jax.grad(loss), pt.Mesh(data=4), np.ones((8, 8), np.float32), np.ones((64, 8), np.float32))
plan.rewrite("recompute", at="layers")
