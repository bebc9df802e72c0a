"""An operand is not an array."""

import jax

import partita as pt


@pt.define("negated(x)   out[i..] = @(x[i..])")
def negated(x: jax.Array) -> jax.Array:
    return -x


negated(None)
