"""A constraint with a dim too few."""

from typing import Any

import numpy as np

import partita as pt

X: Any = np.ones((8, 8, 8))
pt.constrain(X, "data, model")
