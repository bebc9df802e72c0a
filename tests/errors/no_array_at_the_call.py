"""An argument that is not an array, at the call."""

import jax
import numpy as np

import partita as pt


def step(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return x @ params["w"]


PARAMS, X = {"w": np.ones((8, 16), np.float32)}, np.ones((256, 8), np.float32)
plan = pt.plan(step, pt.Mesh(data=4, model=2), PARAMS, X).tile("x", 0, "data")
plan.compile()(PARAMS, "x")
