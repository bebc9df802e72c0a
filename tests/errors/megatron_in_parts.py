"""Megatron for fused queries, keys and values, whose parts do not lie on the same devices."""

# What users write has no types.
# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def attend(x, qkv, o):
    q, k, v = (each.reshape(8, 16, 4, 8) for each in jnp.split(x @ qkv, 3, axis=-1))
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(8, 16, 32) @ o


ARGS = (np.ones(shape, np.float32) for shape in ((8, 16, 32), (32, 96), (32, 32)))
pt.plan(attend, pt.Mesh(data=4, model=4), *ARGS).apply(pt.Megatron("model"))
