"""A batch of one, which no axis divides and which cannot be padded either."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((1, 8), (8, 16), (16, 8)))
plan = pt.plan(chain, pt.Mesh(data=4, model=2), X, W1, W2)
plan.apply(pt.DataParallel("data", inputs="x"))
