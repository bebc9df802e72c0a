"""Data parallelism of inputs that lead with ranges of different length."""

# What users write has no types.
# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def loss(params, labelled, unlabelled):
    left, right = (jnp.tanh(x @ params["w"]) for x in (labelled, unlabelled))
    return jnp.mean(left**2) + jnp.mean(jnp.abs(right)) + jnp.sum(params["b"])


def step(params, labelled, unlabelled):
    grads = jax.grad(loss)(params, labelled, unlabelled)
    return jax.tree.map(jnp.subtract, params, grads)


params = {"w": np.ones((8, 8), np.float32), "b": np.ones(8, np.float32)}
plan = pt.plan(step, pt.Mesh(data=4), params, np.ones((8, 8), np.float32), np.ones((16, 8), np.float32))
plan.apply(pt.DataParallel("data"))
