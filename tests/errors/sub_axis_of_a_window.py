"""A sub-axis of an axis along which devices hold windows that overlap."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import numpy as np

import partita as pt

plan = pt.plan(lambda x, y: (x[1:] - x[:-1], y), pt.Mesh(data=8), np.ones(65), np.ones(16)).tile("x", 0, "data", padded=True)
plan.tile("y", 0, "data.0:2")
