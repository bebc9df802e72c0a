"""A stage of ZeRO that is a text: the axis is in its place, so nothing is swapped."""

from pathlib import Path

import numpy as np
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
plan = pt.plan(chain, pt.Mesh(data=4, model=2), X, W1, W2)
plan.apply(*pt.tactics_from(Path(__file__).with_suffix(".toml")))
