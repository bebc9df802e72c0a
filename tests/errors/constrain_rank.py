"""A constraint with a dim too few."""

import jax.numpy as jnp

import partita as pt

pt.constrain(jnp.ones((8, 8, 8)), "data, model")
