"""Annotations of a program that has none."""

import jax
import numpy as np

import partita as pt


def double(x: jax.Array) -> jax.Array:
    return x * 2


plan = pt.plan(double, pt.Mesh(data=4), np.ones((8, 8), np.float32))
plan.apply(pt.Annotated())
