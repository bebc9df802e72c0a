"""A constraint that names no mesh, where JAX has none."""

# What users write has no types.
# pyright: basic

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

import partita as pt


def f(x):
    return jax.lax.with_sharding_constraint(x @ x, P()) * 2


pt.plan(f, pt.Mesh(data=4, model=2), np.ones((8, 8), np.float32))
