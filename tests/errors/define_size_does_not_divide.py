"""A dim that is not a multiple of its blocks."""

# pyright: basic

import jax

import partita as pt

X = jax.ShapeDtypeStruct((8, 16), "float32")

pt.define("thirds(x)   out[i, (j b)] = @(x[i, (j b)])   size b = 3", lambda x: x * 2, example=(X,))
