"""An argument that is donated and static."""

import jax

import partita as pt


def step(x: jax.Array, mode: str) -> jax.Array:
    return x if mode == "train" else -x


pt.jit(step, mesh=pt.Mesh(data=4), static_argnames="mode", donate_argnames="mode")
