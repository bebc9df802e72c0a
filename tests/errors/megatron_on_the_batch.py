"""Megatron on the axis of the batch."""

# What users write has no types.
# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def loss(params, x):
    for w in params:
        x = x + jnp.tanh(x @ w["up"]) @ w["down"]
    return jnp.mean(x**2)


def step(params, x):
    return jax.tree.map(jnp.subtract, params, jax.grad(loss)(params, x))


params = [{"up": np.ones((64, 128), np.float32), "down": np.ones((128, 64), np.float32)}] * 4
plan = pt.plan(step, pt.Mesh(data=4), params, np.ones((32, 64), np.float32))
plan.apply(pt.DataParallel("data"), pt.Megatron("data"))
