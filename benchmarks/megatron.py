"""Megatron's two functions for a `shard_map` by hand (arXiv 1909.08053): what one leaves as it is, the other sums."""

from functools import partial

import jax


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def enter(x: jax.Array, axis: str = "model") -> jax.Array:
    """Megatron's f, before a part of which each device computes a share: sums the gradient."""
    return x


enter.defvjp(lambda x, axis: (x, None), lambda axis, _, gradient: (jax.lax.psum(gradient, axis),))


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def leave(x: jax.Array, axis: str = "model") -> jax.Array:
    """Megatron's g, after that part: sums the value."""
    return jax.lax.psum(x, axis)


leave.defvjp(lambda x, axis: (leave(x, axis), None), lambda axis, _, gradient: (gradient,))
