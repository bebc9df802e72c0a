"""A random key, which holds two numbers, on an axis."""

# JAX annotates its functions only in part.
# pyright: basic

import jax

import partita as pt


def noise(key: jax.Array) -> jax.Array:
    return jax.random.normal(key, (8,))


plan = pt.plan(noise, pt.Mesh(data=4, model=2), jax.random.key(0))
plan.tile("key", 0, "model")
