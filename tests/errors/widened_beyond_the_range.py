"""Values to widen whose windows are wider than the whole range."""

import jax.numpy as jnp

import partita as pt


def stencil(u: object) -> object:
    for step in range(12):
        padded = jnp.pad(u, 1)
        u = pt.tag(u + 0.1 * (padded[2:] - 2 * u + padded[:-2]), f"u{step}")
    return u


plan = pt.plan(stencil, pt.Mesh(data=8), jnp.ones(16)).widen([f"u{step}" for step in range(11)])
plan.tile("u", 0, "data")
