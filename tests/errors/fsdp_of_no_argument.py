"""FSDP restricted to a value that is no argument."""

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def layer(x: jax.Array, w: jax.Array) -> jax.Array:
    return pt.tag(jnp.tanh(x @ w), "h")


plan = pt.plan(layer, pt.Mesh(data=4), np.ones((8, 4), np.float32), np.ones((4, 4), np.float32)).tile("x", 0, "data")
plan.apply(pt.FSDP("data", values="h"))
