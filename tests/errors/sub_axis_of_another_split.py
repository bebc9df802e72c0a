"""A sub-axis of an axis that is split in another way."""

import jax.numpy as jnp

import partita as pt

plan = pt.plan(jnp.sin, pt.Mesh(data=8), jnp.ones((64, 16))).tile("x", 0, "data.0:2")
plan.tile("x", 1, "data.0:4")
