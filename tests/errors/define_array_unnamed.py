"""An array is passed for a parameter that the definition does not name."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("weighed(x)   out[i, j] = @(x[i, j])")
def weighed(x: jax.Array, w: jax.Array) -> jax.Array:
    return x * w


weighed(jnp.ones((4, 8)), jnp.ones((4, 8)))
