"""A module that the step closes over and changes."""

import numpy as np
from flax import nnx

import partita as pt

norm = nnx.BatchNorm(8, rngs=nnx.Rngs(0))


def normalised(x: np.ndarray) -> object:
    return norm(x)


pt.plan(normalised, pt.Mesh(data=4), np.ones((8, 8), np.float32))
