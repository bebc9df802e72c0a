"""Megatron on an axis that an earlier tactic uses at the same products."""

import jax
import numpy as np

import partita as pt


def layer(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return (x @ up) @ down


X, UP, DOWN = (np.ones(shape, np.float32) for shape in ((8, 16), (16, 64), (64, 16)))
plan = pt.plan(layer, pt.Mesh(model=4), X, UP, DOWN)
plan.apply(pt.DataParallel("model", inputs="x"), pt.Megatron("model", column="up", row="down"))
