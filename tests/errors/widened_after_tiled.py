"""A value to widen that is tiled already."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import jax.numpy as jnp
import numpy as np

import partita as pt

plan = pt.plan(lambda u: jnp.pad(pt.tag(jnp.sin(u), "v"), 1)[2:], pt.Mesh(data=8), np.ones(16)).tile("u", 0, "data")
plan.widen("v")
