"""A model that contains its activation function."""

# Equinox annotates its functions only in part.
# pyright: basic

import equinox as eqx
import jax
import numpy as np

import partita as pt


def forward(model: eqx.nn.MLP, x: jax.Array) -> jax.Array:
    return jax.vmap(model)(x)


model = eqx.nn.MLP(8, 4, 16, depth=1, key=jax.random.key(0))
pt.plan(forward, pt.Mesh(data=4), model, np.ones((8, 8), np.float32))
