"""A tactic that does not exist."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
TACTICS = """
# data first
DataParalel('data', inputs='x')
"""
pt.replay(chain, pt.Mesh(data=4, model=2), TACTICS, X, W1, W2)
