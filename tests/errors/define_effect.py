"""A print would run once on every block."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("printed(x)   out[i..] = @(x[i..])")
def printed(x: jax.Array) -> jax.Array:
    jax.debug.print("{}", x)
    return x


printed(jnp.ones(8))
