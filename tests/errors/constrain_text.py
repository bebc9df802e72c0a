"""A constraint with something that is no axis."""

import jax.numpy as jnp

import partita as pt

pt.constrain(jnp.ones((8, 8, 8)), "data, 4*model, _")
