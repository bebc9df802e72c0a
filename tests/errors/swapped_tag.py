"""A tag's name instead of its value."""

import numpy as np

import partita as pt

X = np.ones((256, 8), np.float32)
pt.tag("h", X)  # pyright: ignore[reportArgumentType]
