"""Inputs by a name that no argument has, in a program of many leaves."""

# What users write has no types.
# pyright: basic

import jax
import numpy as np

import partita as pt


def step(p, b):
    return jax.tree.map(lambda w: w + b["x"].sum(), p)


params = {f"layer{number}": {"w": np.ones((8, 8), np.float32)} for number in range(28)}
plan = pt.plan(step, pt.Mesh(data=4), params, {"x": np.ones(8, np.float32), "y": np.ones(8, np.float32)})
plan.apply(pt.DataParallel("data", inputs="inputs"))
