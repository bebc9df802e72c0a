"""Two functions want one name."""

import jax

import partita as pt


def rotate(x: jax.Array) -> jax.Array:
    return -x


def turn(x: jax.Array) -> jax.Array:
    return x


pt.define("rotated(x)   out[i..] = @(x[i..])", rotate)
pt.define("rotated(x)   out[i..] = @(x[i..])", turn)
