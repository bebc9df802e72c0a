"""An operand that nothing reads."""

import jax

import partita as pt


def gated(x: jax.Array, gate: jax.Array) -> jax.Array:
    return x * gate


pt.define("gated(x, gate)   out[i..] = @(x[i..])", gated)
