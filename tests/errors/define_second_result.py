"""The function returns more than the definition names."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("spread(x)   out[i] = @(x[i, j:])")
def spread(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.mean(x, axis=1), jnp.var(x, axis=1)


spread(jnp.ones((4, 8)))
