"""Another static value than the plan was made with."""

import jax
import numpy as np

import partita as pt


def step(x: jax.Array, mode: str) -> jax.Array:
    return x if mode == "train" else -x


X = np.ones(8, np.float32)
plan = pt.plan(step, pt.Mesh(data=4), X, "train", static_argnames=("mode",))
plan.compile()(X, "test")
