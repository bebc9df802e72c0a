"""A constraint whose dim does not divide over the plan's mesh."""

import jax
import numpy as np

import partita as pt


def halved(x: jax.Array) -> jax.Array:
    return pt.constrain(x / 2, "data, _")


plan = pt.plan(halved, pt.Mesh(data=4), np.ones((6, 8), np.float32))
plan.apply(pt.Annotated())
