"""A step that returns its model whole, with the activation function in it."""

# Equinox annotates its functions only in part.
# pyright: basic

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import partita as pt

params, static = eqx.partition(eqx.nn.MLP(8, 4, 16, depth=1, key=jax.random.key(0)), eqx.is_array)


def step(params: eqx.nn.MLP, x: jax.Array) -> eqx.nn.MLP:
    model = eqx.combine(params, static)
    grads = eqx.filter_grad(lambda model: jnp.mean(jax.vmap(model)(x) ** 2))(model)
    return eqx.apply_updates(model, grads)


pt.plan(step, pt.Mesh(data=4), params, np.ones((8, 8), np.float32))
