"""A sub-axis whose size does not divide its axis."""

import jax.numpy as jnp

import partita as pt

plan = pt.plan(jnp.sin, pt.Mesh(data=8), jnp.ones((64, 16)))
plan.tile("x", 0, "data.0:3")
