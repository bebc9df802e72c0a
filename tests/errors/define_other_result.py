"""The result has no second dim."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("rows(x)   out[i, j] = @(x[i, j])")
def rows(x: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=1)


rows(jnp.ones((4, 8)))
