"""A number, where the collective that has it in the list is meant."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
plan = pt.plan(chain, pt.Mesh(data=4, model=2), X, W1, W2).tile("w1", 1, "model")
number: object = 0
plan.explain(number)  # pyright: ignore[reportArgumentType]
