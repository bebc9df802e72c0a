"""A value to widen that is tiled already."""

import jax.numpy as jnp

import partita as pt

plan = pt.plan(lambda u: jnp.pad(pt.tag(jnp.sin(u), "v"), 1)[2:], pt.Mesh(data=8), jnp.ones(16)).tile("u", 0, "data")
plan.widen("v")
