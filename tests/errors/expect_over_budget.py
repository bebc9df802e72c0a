"""A plan that exceeds its budgets."""

import numpy as np

import partita as pt


def product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x @ w


plan = pt.plan(product, pt.Mesh(data=4), np.ones((64, 8), np.float32), np.ones((8, 16), np.float32)).tile("w", 0, "data")
plan.expect(all_reduce=1, bytes_per_device="<2KiB", replicated_flops="<1%")
