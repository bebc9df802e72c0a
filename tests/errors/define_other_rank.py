"""A definition of matrices is given a vector."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("rows_sum(x)   out[i] = @(x[i, j:])")
def rows_sum(x: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=1)


rows_sum(jnp.ones(8))
