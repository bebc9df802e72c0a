"""A tag of a tree, taken for a value."""

import numpy as np

import partita as pt


def tagged(x: np.ndarray) -> object:
    parts = pt.tag({"u": x + 1, "v": 2 * x}, "parts")
    return parts["u"] - parts["v"]


plan = pt.plan(tagged, pt.Mesh(data=4), np.ones((8, 8), np.float32))
plan.tile("parts", 0, "data")
