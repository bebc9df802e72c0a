"""A dataclass that JAX does not know as a tree."""

from dataclasses import dataclass

import numpy as np

import partita as pt


@dataclass
class State:
    w: np.ndarray


def same(state: State) -> np.ndarray:
    return state.w


pt.plan(same, pt.Mesh(data=4), State(np.ones((8, 8), np.float32)))
