"""Layers for the training step of `tpu_model`: Llama's, and the same with a mixture of experts."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from partita.examples import moe

from .tpu_model import Around, Config, Tree, norm


@dataclass(frozen=True, slots=True)
class Llama(Config):
    """Llama 3.2 1B, but for its vocabulary: rotary positions, each head of keys and values for a group of queries, SwiGLU."""

    layers: int = 16
    width: int = 2048
    head: int = 64
    kv: int = 8
    hidden: int = 8192

    def weights(self) -> Tree:
        units = {"gate": (self.width, self.hidden), "up": (self.width, self.hidden), "down": (self.hidden, self.width)}
        return _attention_weights(self) | units

    def block(self, x: jax.Array, p: Tree, around: Around) -> jax.Array:
        x = x + _attention(norm(x, p["norm1"]), p, around)
        h = norm(x, p["norm2"])
        return x + (jax.nn.silu(around(h @ p["gate"], "units")) * around(h @ p["up"], "units")) @ p["down"]


@dataclass(frozen=True, slots=True)
class Experts(Llama):
    """Each token goes to two experts with SwiGLU. In a row of the batch an expert takes 5/4 of its fair share."""

    width: int = 1024
    hidden: int = 4096
    experts: int = 16

    def weights(self) -> Tree:
        into, out = (self.experts, self.width, self.hidden), (self.experts, self.hidden, self.width)
        experts = {"gate": into, "up": into, "down": out}
        return _attention_weights(self) | {"router": (self.width, self.experts), "experts": experts}

    def block(self, x: jax.Array, p: Tree, around: Around) -> jax.Array:
        x = x + _attention(norm(x, p["norm1"]), p, around)
        return x + _mixture(norm(x, p["norm2"]), p, around)


def _attention_weights(c: Llama) -> Tree:
    q, kv = (c.kv, c.heads // c.kv, c.head), (c.kv, c.head)
    products = {"wq": (c.width, *q), "wk": (c.width, *kv), "wv": (c.width, *kv), "wo": (*q, c.width)}
    return {"norm1": (c.width,), **products, "norm2": (c.width,)}


def _attention(x: jax.Array, p: Tree, around: Around) -> jax.Array:
    """Causal attention of queries `[batch, length, kv, group, head]` on keys and values `[batch, length, kv, head]`."""
    q = around(_rotated(jnp.einsum("btm,mkgd->btkgd", x, p["wq"])), "heads")
    k = around(_rotated(jnp.einsum("btm,mkd->btkd", x, p["wk"])), "heads")
    v = around(jnp.einsum("btm,mkd->btkd", x, p["wv"]), "heads")
    scores = jnp.einsum("bqkgd,btkd->bkgqt", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))[None, None, None]
    chances = jax.nn.softmax(jnp.where(causal, scores, -1e9)).astype(x.dtype)
    return jnp.einsum("btkgd,kgdm->btm", around(jnp.einsum("bkgqt,btkd->bqkgd", chances, v), "heads"), p["wo"])


def _rotated(x: jax.Array) -> jax.Array:
    """Turns the pairs of each head by an angle that grows with the position, in float32."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * (5e5 ** (-jnp.arange(half) / half))[None]
    angles = angles.reshape(1, x.shape[1], *[1] * (x.ndim - 3), half)
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


def _mixture(x: jax.Array, p: Tree, around: Around) -> jax.Array:
    """Tokens travel to the slots of their experts, and back, by products with masks: `[row, choice, token, expert, slot]`."""
    rows, length, _ = x.shape
    count = p["router"].shape[-1]
    capacity = 5 * moe.BEST * length // (4 * count)
    chances, expert, place = moe.choices(x.astype(jnp.float32), p["router"].astype(jnp.float32))
    slot = jax.nn.one_hot(expert, count, dtype=x.dtype)[..., None] * jax.nn.one_hot(place, capacity, dtype=x.dtype)[:, :, None]
    slot = slot.reshape(rows, moe.BEST, length, count, capacity)
    combine = jnp.einsum("bkt,bktec->btec", chances.reshape(rows, moe.BEST, length).astype(x.dtype), slot)
    sent = around(around(jnp.einsum("bktec,btm->ebcm", slot, x), "slots, by row"), "slots, by expert")
    w = p["experts"]
    h = jax.nn.silu(jnp.einsum("ebcm,emf->ebcf", sent, w["gate"])) * jnp.einsum("ebcm,emf->ebcf", sent, w["up"])
    y = around(jnp.einsum("ebcf,efm->ebcm", h, w["down"]), "slots, by expert")
    return jnp.einsum("btec,ebcm->btm", combine, around(y, "slots, by row"))
