"""The definition is forgotten."""

import jax

import partita as pt


def rotate(x: jax.Array) -> jax.Array:
    return -x


pt.define(rotate)  # pyright: ignore[reportArgumentType]
