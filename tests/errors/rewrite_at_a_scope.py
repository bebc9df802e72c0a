"""A scope where a law takes one value."""

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def loss(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    with jax.named_scope("head"):
        logits = pt.tag(jnp.tanh(x @ w1) @ w2, "logits")
        return jnp.max(logits, axis=-1).sum()


arrays = np.ones((64, 8), np.float32), np.ones((8, 16), np.float32), np.ones((16, 128), np.float32)
pt.plan(loss, pt.Mesh(data=4), *arrays).rewrite("chunk", at="head", dim=0, trips=8)
