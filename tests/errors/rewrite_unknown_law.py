"""A law that does not exist."""

import numpy as np

import partita as pt


def product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x @ w


pt.plan(product, pt.Mesh(data=4), np.ones((64, 8), np.float32), np.ones((8, 8), np.float32)).rewrite("asociate")
