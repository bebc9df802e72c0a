"""A compiled plan for two devices is called under a mesh of eight."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


def layer(x: jax.Array) -> jax.Array:
    return jnp.tanh(x) * 2


step = pt.plan(layer, pt.Mesh(data=2), jnp.ones((8, 4))).tile("x", 0, "data").compile()
with jax.set_mesh(jax.make_mesh((8,), ("all",))):
    step(jnp.ones((8, 4)))
