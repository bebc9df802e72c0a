"""A definition without `@` describes the op completely; this one describes another op."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("scaled(x, w)   out[i, j] = x[i, j] * w[j]")
def scaled(x: jax.Array, w: jax.Array) -> jax.Array:
    return x * (1 + w[None])


pt.plan(scaled, pt.Mesh(data=4), jnp.ones((16, 8)), jnp.ones(8))
