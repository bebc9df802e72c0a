"""A dim without the axis that tiles it."""

import numpy as np

import partita as pt


def double(x: np.ndarray) -> np.ndarray:
    return 2 * x


plan = pt.plan(double, pt.Mesh(data=4, model=2), np.ones((8, 8), np.float32))
plan.tile("x", 0)
