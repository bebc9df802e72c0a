"""A mesh that is a dict."""

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
pt.plan(chain, {"data": 4}, X, W1, W2)  # pyright: ignore[reportArgumentType]
