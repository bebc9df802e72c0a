"""A sub-axis whose size does not divide its axis."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import jax.numpy as jnp
import numpy as np

import partita as pt

plan = pt.plan(jnp.sin, pt.Mesh(data=8), np.ones((64, 16)))
plan.tile("x", 0, "data.0:3")
