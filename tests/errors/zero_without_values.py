"""ZeRO that names neither parameters nor the optimizer's state."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
plan = pt.plan(chain, pt.Mesh(data=4, model=2), X, W1, W2)
plan.apply(pt.ZeRO(3, "data"))
