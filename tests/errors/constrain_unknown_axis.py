"""A constraint on an axis that the mesh does not have."""

# What users write has no types.
# pyright: basic

import jax.numpy as jnp
import numpy as np

import partita as pt


def f(x):
    return jnp.sin(pt.constrain(jnp.cos(x), "date, _")) * 2


pt.plan(f, pt.Mesh(data=4, model=2), np.ones((8, 8), np.float32)).apply(pt.Annotated())
