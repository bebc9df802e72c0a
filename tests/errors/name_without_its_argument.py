"""A leaf named without its argument."""

import numpy as np

import partita as pt


def head(state: dict[str, dict[str, np.ndarray]], x: np.ndarray) -> np.ndarray:
    return x @ state["params"]["head"]


plan = pt.plan(head, pt.Mesh(model=2), {"params": {"head": np.ones((8, 16), np.float32)}}, np.ones((4, 8), np.float32))
plan.tile("head", 1, "model")
