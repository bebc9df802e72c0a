"""Annotations of a program that has none."""

import numpy as np

import partita as pt

plan = pt.plan(lambda x: x * 2, pt.Mesh(data=4), np.ones((8, 8), np.float32))
plan.apply(pt.Annotated())
