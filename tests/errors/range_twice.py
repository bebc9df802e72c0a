"""A value that has the range twice."""

import numpy as np
from models import gram

import partita as pt

plan = pt.plan(gram, pt.Mesh(data=4), np.ones((8, 8), np.float32)).name("x", 0, "B")
plan.tile("result", "B", "data")
