"""The training step of `examples/moe.py` on one device's groups and experts: tokens travel by two all_to_alls each way."""

from typing import Any

import jax
import jax.numpy as jnp

from partita.examples import moe

Tree = Any


def train_step(params: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
    def loss(params: Tree) -> jax.Array:
        y = _mixture(params, jnp.tanh(batch["x"] @ params["into"]))
        return jnp.mean((y - batch["y"]) ** 2) / jax.lax.axis_size("data")

    value, grads = jax.value_and_grad(loss)(params)
    # The gradient of an expert is complete on its device.
    grads |= {name: jax.lax.psum(grads[name], "data") for name in ("into", "gate")}
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), jax.lax.psum(value, "data")


def _mixture(params: Tree, x: jax.Array) -> jax.Array:
    """`moe.mixture`, whose slots are sent to the devices of their experts and back."""
    groups, tokens, _ = x.shape
    count = params["gate"].shape[-1]
    capacity = 2 * moe.BEST * tokens // count
    chances, expert, place = moe.choices(x, params["gate"])
    slot = jax.nn.one_hot(expert, count)[..., None] * jax.nn.one_hot(place, capacity)[:, :, None]
    slot = slot.reshape(groups, moe.BEST, tokens, count, capacity)
    combine = jnp.einsum("gkt,gktec->gtec", chances.reshape(groups, moe.BEST, tokens), slot)
    sent = jax.lax.all_to_all(jnp.einsum("gktec,gtm->egcm", slot, x), "data", 0, 1, tiled=True)
    y = jax.lax.all_to_all(moe.experts(sent, params["experts"]), "data", 1, 0, tiled=True)
    return x + jnp.einsum("gtec,egcm->gtm", combine, y)
