"""A PartitionSpec in place of a dim and its axis."""

import numpy as np
from jax.sharding import PartitionSpec as P

import partita as pt


def double(x: np.ndarray) -> np.ndarray:
    return 2 * x


plan = pt.plan(double, pt.Mesh(data=4, model=2), np.ones((8, 8), np.float32))
plan.tile("x", P("data", "model"))  # pyright: ignore[reportArgumentType]
