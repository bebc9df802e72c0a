"""A claim that propagation from an earlier tactic is in the way of: either order alone is refused."""

# What users write has no types.
# pyright: basic

import numpy as np

import partita as pt

A = np.ones((16, 16, 16), np.float32)
plan = pt.plan(lambda a, b, c: c + (a + b), pt.Mesh(x=4, y=2), A, A, A)
plan = plan.tile(["a", "b"], 0, "y").tile(["a", "b"], 2, "x")
plan.tile("c", 1, "x")
