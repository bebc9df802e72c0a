import jax.numpy as jnp

import partita as pt


def mlp(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


x, w1, w2 = jnp.ones((64, 8)), jnp.ones((8, 16)), jnp.ones((16, 8))
pt.plan(mlp, pt.Mesh(data=4), x, w1, w2).rewrite("reassociate")
