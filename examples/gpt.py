"""A small character GPT in plain JAX and optax: nothing in this file depends on Partita.

    logits = forward(params, tokens)                           # [batch, length] -> [batch, length, vocabulary]
    params, opt, loss = train_step(params, opt, batch)

`demo` trains it, on one device and on eight.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Tree = Any

OPTIMIZER = optax.adam(learning_rate=2e-3, b1=0.9, b2=0.95)


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of the model."""

    vocabulary: int = 128
    length: int = 64
    layers: int = 2
    width: int = 128
    heads: int = 4

    @property
    def head(self) -> int:
        return self.width // self.heads


def init(config: Config, seed: int = 0) -> Tree:
    """Random parameters: a dict of arrays, with one dict per block."""
    random = np.random.default_rng(seed)

    def normal(*shape: int, fan_in: int) -> jax.Array:
        return jnp.asarray(random.normal(0.0, fan_in**-0.5, shape), jnp.float32)

    def block() -> Tree:
        c = config
        return {
            "ln1": {"scale": jnp.ones(c.width), "bias": jnp.zeros(c.width)},
            "wqkv": normal(c.width, 3, c.heads, c.head, fan_in=c.width),
            "wo": normal(c.heads, c.head, c.width, fan_in=2 * c.layers * c.width),
            "ln2": {"scale": jnp.ones(c.width), "bias": jnp.zeros(c.width)},
            "w1": normal(c.width, 4 * c.width, fan_in=c.width),
            "w2": normal(4 * c.width, c.width, fan_in=8 * c.layers * c.width),
            "b2": jnp.zeros(c.width),
        }

    return {
        "embed": normal(config.vocabulary, config.width, fan_in=config.width),
        "position": normal(config.length, config.width, fan_in=config.width),
        "blocks": [block() for _ in range(config.layers)],
    }


def layer_norm(x: jax.Array, norm: Tree) -> jax.Array:
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return (
        x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * norm["scale"][None, None] + norm["bias"][None, None]
    )


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal softmax attention on `[batch, length, heads, head]`."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))[None, None]
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -1e9)), v)


def block(x: jax.Array, p: Tree) -> jax.Array:
    q, k, v = jnp.einsum("btm,mchd->cbthd", layer_norm(x, p["ln1"]), p["wqkv"])
    x = x + jnp.einsum("bthd,hdm->btm", attention(q, k, v), p["wo"])
    return x + jax.nn.gelu(layer_norm(x, p["ln2"]) @ p["w1"]) @ p["w2"] + p["b2"][None, None]


def forward(params: Tree, tokens: jax.Array) -> jax.Array:
    """Logits over the next character, for every position."""
    x = params["embed"][tokens] + params["position"][None]
    for p in params["blocks"]:
        x = block(x, p)
    return x @ params["embed"].T


def loss(params: Tree, batch: Tree) -> jax.Array:
    """Mean cross entropy, in nats per character."""
    logits = forward(params, batch["x"])
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]))


def train_step(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
    """One step of Adam: new parameters, new optimizer state, loss."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    updates, opt = OPTIMIZER.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, value
