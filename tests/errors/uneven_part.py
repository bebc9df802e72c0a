"""A tiled dim whose parts do not divide over another axis."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 12), (12, 16), (16, 8)))
plan = pt.plan(chain, pt.Mesh(data=4, model=2), X, W1, W2).tile("w1", 0, "data")
plan.tile("w1", 0, "model")
