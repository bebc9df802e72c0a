"""A list where the traced call had a tuple."""

import numpy as np

import partita as pt


def total(xs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return xs[0] + xs[1]


x = np.ones((8, 8), np.float32)
pt.plan(total, pt.Mesh(data=4), (x, x)).compile()([x, x])
