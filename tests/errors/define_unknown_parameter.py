"""The function has another name for its operand."""

import jax

import partita as pt


def normalise(values: jax.Array) -> jax.Array:
    return values / 2


pt.define("normalise(value)   out[i..] = @(value[i..])", normalise)
