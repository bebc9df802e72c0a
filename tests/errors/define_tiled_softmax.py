"""A softmax needs the whole dim that it normalises."""

import jax

import partita as pt

X = jax.ShapeDtypeStruct((16, 64), "float32")


pt.define("softmax(x)   out[b.., d] = @(x[b.., d])", jax.nn.softmax, example=(X,))
