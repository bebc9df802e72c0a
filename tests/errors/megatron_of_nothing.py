"""Megatron for a program in which an op between the products needs all hidden units."""

# What users write has no types.
# pyright: basic

import jax.numpy as jnp
import numpy as np

import partita as pt


def ranked(x, w1, w2):
    return jnp.cumsum(jnp.sort(x @ w1), axis=1) @ w2


X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
pt.plan(ranked, pt.Mesh(data=4, model=2), X, W1, W2).apply(pt.Megatron("model"))
