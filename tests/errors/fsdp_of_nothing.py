"""FSDP of a program that stores nothing from call to call."""

# What users write has no types.
# pyright: basic

import jax.numpy as jnp
import numpy as np

import partita as pt

plan = pt.plan(lambda x, w: jnp.sum(x @ w), pt.Mesh(data=4), np.ones((256, 8), np.float32), np.ones((8, 16), np.float32))
plan.apply(pt.FSDP("data"))
