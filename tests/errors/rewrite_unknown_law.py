import jax.numpy as jnp

import partita as pt

pt.plan(jnp.dot, pt.Mesh(data=4), jnp.ones((64, 8)), jnp.ones((8, 8))).rewrite("asociate")
