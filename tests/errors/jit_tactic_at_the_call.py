"""A tactic that does not fit the arguments of the call."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
step = pt.jit(chain, mesh=pt.Mesh(data=4), tactics=[pt.DataParallel("data", inputs="batch")])
step(X, W1, W2)
