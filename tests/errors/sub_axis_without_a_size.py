"""A sub-axis of an axis that is not split yet, without its size."""

import jax.numpy as jnp

import partita as pt

plan = pt.plan(jnp.sin, pt.Mesh(data=8), jnp.ones((64, 16)))
plan.tile("x", 0, "data.0")
