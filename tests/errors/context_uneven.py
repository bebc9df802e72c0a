"""Context parallelism of a sequence that the devices do not divide."""

# What users write has no types.
# pyright: basic

import jax.numpy as jnp
import numpy as np

import partita as pt


def loss(table, tokens):
    return jnp.sum(table[tokens])


pt.plan(loss, pt.Mesh(context=4), np.ones((32, 8), np.float32), np.ones((8, 10), np.int32)).apply(pt.ContextParallel("context"))
