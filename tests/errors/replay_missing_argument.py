"""A tactic with a missing argument."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
TACTICS = """
tile('x', 'data')
"""
pt.replay(chain, pt.Mesh(data=4, model=2), TACTICS, X, W1, W2)
