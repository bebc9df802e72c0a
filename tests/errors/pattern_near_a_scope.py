"""A pattern that is nearly the name of a scope, in a program of many names."""

# What users write has no types.
# pyright: basic

import jax
import numpy as np

import partita as pt


def model(params, x):
    for number, w in enumerate(params):
        with jax.named_scope(f"my_encoder/{number}"):
            x = jax.nn.relu(x @ w) @ w.T
    return x


plan = pt.plan(model, pt.Mesh(data=4), [np.ones((8, 16), np.float32)] * 12, np.ones((4, 8), np.float32))
plan.tile("enc*", 0, "data")
