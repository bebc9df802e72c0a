"""A tactic that never stops changing the plan."""

# What users write has no types.
# pyright: basic

from itertools import count

import numpy as np
from models import chain

import partita as pt

NUMBERS = count()
X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))


def again(plan):
    return plan.name("x", 0, f"rows{next(NUMBERS)}")


pt.plan(chain, pt.Mesh(data=4), X, W1, W2).apply(pt.repeat(again))
