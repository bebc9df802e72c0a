"""A stop of one plan, explained by another one, which is past it."""

# What users write has no types.
# pyright: basic

import jax.numpy as jnp
import numpy as np

import partita as pt

plan = pt.plan(lambda x: jnp.exp(jnp.argsort(x, 0)), pt.Mesh(data=8), np.ones((64, 16), np.float32)).tile("x", 0, "data")
stop = plan.blocked[0]
plan.tile("sort#0", 1, "data").explain(stop)
