"""The function closes over a traced value."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


def layer(x: jax.Array, scale: jax.Array) -> jax.Array:
    @pt.define("rescaled(x)   out[i..] = @(x[i..])")
    def rescaled(x: jax.Array) -> jax.Array:
        return x * scale

    return rescaled(x)


jax.jit(layer)(jnp.ones(8), 2.0)
