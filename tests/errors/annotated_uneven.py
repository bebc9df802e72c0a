"""A constraint whose dim does not divide over the plan's mesh."""

import jax.numpy as jnp
import numpy as np

import partita as pt

plan = pt.plan(lambda x: pt.constrain(jnp.tanh(x), "data, _"), pt.Mesh(data=4), np.ones((6, 8), np.float32))
plan.apply(pt.Annotated())
