"""A batch that is reshaped for a loop whose trips the axis does not divide."""

from typing import Any

import numpy as np
from jax import lax, numpy as jnp

import partita as pt


def accumulated(w: Any, x: Any) -> Any:
    parts = x.reshape(3, 10, 16)
    return lax.scan(lambda total, part: (total + jnp.tanh(part @ w).sum(), None), 0.0, parts)[0]


plan = pt.plan(accumulated, pt.Mesh(data=6), np.ones((16, 16), np.float32), np.ones((30, 16), np.float32))
plan.apply(pt.DataParallel("data", inputs="x"))
