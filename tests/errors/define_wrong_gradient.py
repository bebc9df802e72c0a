"""A derivative that reads all rows cannot be computed in blocks."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("clipped(x)   out[i.., j:] = @(x[i.., j:])")
@jax.custom_vjp
def clipped(x: jax.Array) -> jax.Array:
    return jnp.sin(x)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (g * jnp.cos(x) / jnp.linalg.norm(g),))

clipped.check(jax.ShapeDtypeStruct((16, 64), "float32"))
