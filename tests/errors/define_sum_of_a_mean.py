"""Means of blocks do not add up to a mean."""

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("averaged(x, w)   out[i, j] = sum(k) @(x[i, k], w[k, j])")
def averaged(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.mean(x[:, :, None] * w[None], axis=1)


X, W = jax.ShapeDtypeStruct((16, 64), "float32"), jax.ShapeDtypeStruct((64, 8), "float32")

pt.plan(averaged, pt.Mesh(data=4), X, W)
