"""An unpartitioned dim without a name."""

# pyright: basic

import jax

import partita as pt

X = jax.ShapeDtypeStruct((8, 16), "float32")

pt.define("weighed(x, w)   out[i, j] = @(x[i, j], w[:])", lambda x, w: x * w, example=(X, X))
