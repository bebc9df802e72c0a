"""A cure for a stop of one plan, applied to another one."""

# What users write has no types.
# pyright: basic

import jax.numpy as jnp
import numpy as np

import partita as pt

plan = pt.plan(lambda x: jnp.exp(jnp.argsort(x, 0)), pt.Mesh(data=8), np.ones((64, 16), np.float32))
cure = plan.tile("x", 0, "data").blocked[0].cure
plan.apply(cure)  # pyright: ignore[reportArgumentType]
