"""A custom derivative rule closes over the value that is differentiated."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


def halved(x: jax.Array, scale: jax.Array) -> jax.Array:
    @jax.custom_jvp
    def product(x: jax.Array) -> jax.Array:
        return x * scale

    product.defjvp(lambda primals, tangents: (product(*primals), 0.5 * tangents[0]))
    return product(x).sum()


pt.plan(jax.grad(halved, (0, 1)), pt.Mesh(a=2), jnp.ones(8), jnp.ones(8))
