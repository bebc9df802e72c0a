"""An index that is read, but is neither in the result nor folded."""

# pyright: basic

import jax

import partita as pt

X = jax.ShapeDtypeStruct((8, 16), "float32")

pt.define("first(x)   out[i] = @(x[i, j])", lambda x: x[:, 0], example=(X,))
