"""A result whose dims are in the order of the operand."""

# pyright: basic

import jax

import partita as pt

X = jax.ShapeDtypeStruct((8, 16), "float32")

pt.define("turned(x)   out[i, j] = @(x[i, j])", lambda x: x.T, example=(X,))
