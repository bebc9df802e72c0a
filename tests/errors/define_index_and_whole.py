"""One name for a dim that is an index in one operand and unpartitioned in the other."""

# pyright: basic

import jax

import partita as pt

X = jax.ShapeDtypeStruct((8, 16), "float32")

pt.define("scaled(x, y)   out[i, j] = @(x[i, j], y[i, j:])", lambda x, y: x * y, example=(X, X))
