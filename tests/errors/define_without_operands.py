"""A definition without the op and its operands; another line of the file ends with the same text."""

# pyright: basic

import jax

import partita as pt

X = jax.ShapeDtypeStruct((8, 16), "float32")

pt.define("twice(x)   out[i, j] = @(x[i, j])", lambda x: x * 2)

pt.define("out[i, j] = @(x[i, j])", lambda x: x * 2, example=(X,))
