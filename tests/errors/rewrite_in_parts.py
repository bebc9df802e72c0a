import jax.numpy as jnp

import partita as pt


def normalised(x, w):
    h = pt.tag(x @ w, "h")
    return h / jnp.sum(h)


pt.plan(normalised, pt.Mesh(data=4), jnp.ones((64, 8)), jnp.ones((8, 8))).rewrite("chunk", at="h", dim=0, trips=4)
