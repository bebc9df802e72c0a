"""Every row of a running sum depends on those before it."""

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("running(x)   out[i, j] = @(x[i, j])")
def running(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x, axis=0)


running.check(jax.ShapeDtypeStruct((16, 64), "float32"))
