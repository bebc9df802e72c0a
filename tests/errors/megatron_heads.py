"""A column that tiles the width of each head, over which the scores are summed."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


def attention(x: jax.Array, wq: jax.Array, wk: jax.Array, wo: jax.Array) -> jax.Array:
    q, k = (jnp.einsum("bsm,mhd->bshd", x, w) for w in (wq, wk))
    scores = jnp.einsum("bqhd,bshd->bhqs", q, k)
    return jnp.einsum("bshd,hdm->bsm", jnp.einsum("bhqs,bshd->bqhd", scores, k), wo)


X, WQ, WK, WO = (np.ones(shape, np.float32) for shape in ((8, 4, 16), (16, 2, 8), (16, 2, 8), (2, 8, 16)))
pt.plan(attention, pt.Mesh(model=2), X, WQ, WK, WO).apply(pt.Megatron("model", column=["wq", "wk"], row="wo"))
