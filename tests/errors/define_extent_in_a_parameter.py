"""The number of segments is an extent, and the definition does not say so."""

# pyright: basic

import jax
import jax.numpy as jnp

import partita as pt


@pt.define("segments(x, ids)   out[v, j] = sum(i) [v = ids[i]] * x[i, j]")
def segments(x: jax.Array, ids: jax.Array, count: int) -> jax.Array:
    return jnp.zeros((count, x.shape[1])).at[ids].add(x)


X, IDS = jax.ShapeDtypeStruct((16, 4), "float32"), jax.ShapeDtypeStruct((16,), "int32")

segments.check(X, IDS, count=8)
