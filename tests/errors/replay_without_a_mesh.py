"""A trace names no mesh; only a plan file does."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
pt.replay(chain, "tile('x', 0, 'data')", X, W1, W2)
