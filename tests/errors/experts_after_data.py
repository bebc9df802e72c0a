"""Experts over an axis that an earlier tactic gave to the tokens."""

import jax
import numpy as np

import partita as pt


def layer(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


X, W = np.ones((8, 16, 8), np.float32), np.ones((8, 8, 8), np.float32)
plan = pt.plan(layer, pt.Mesh(data=8), X, W).apply(pt.DataParallel("data", inputs="x", dim=1))
plan.apply(pt.ExpertParallel("data", experts="w"))
