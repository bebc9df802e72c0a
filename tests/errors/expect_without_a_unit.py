"""A budget in a unit that does not exist."""

import numpy as np

import partita as pt


def double(x: np.ndarray) -> np.ndarray:
    return 2 * x


plan = pt.plan(double, pt.Mesh(data=4), np.ones((64, 8), np.float32)).tile("x", 0, "data")
plan.expect(bytes_per_device="<2 megabytes")
