"""A tactic that does not fit the arguments of the call."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import jax.numpy as jnp
from models import chain

import partita as pt

X, W1, W2 = (jnp.ones(shape) for shape in ((256, 8), (8, 16), (16, 8)))
step = pt.jit(chain, mesh=pt.Mesh(data=4), tactics=[pt.DataParallel("data", inputs="batch")])
step(X, W1, W2)
