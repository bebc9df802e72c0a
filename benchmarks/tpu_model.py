"""The training step that `benchmarks.tpu` compiles: a pre-norm transformer with a tied embedding, in bfloat16, and AdamW.

Only shapes are made. `around` is applied to the activations after the lookup and after each block: a constraint, or nothing.
It also takes what they are called. `tpu_layers` has other layers for the same step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

Tree = Any
Around = Callable[[jax.Array, str], jax.Array]

OPTIMIZER = optax.adamw(learning_rate=3e-4, b1=0.9, b2=0.95)


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of the model. With `scanned`, the layers are stacked, iterated over by a scan and recomputed."""

    layers: int
    width: int
    vocabulary: int = 32_000
    head: int = 128
    batch: int = 32
    length: int = 512
    scanned: bool = False

    @property
    def heads(self) -> int:
        return self.width // self.head

    def weights(self) -> Tree:
        """The shapes of the weights of a layer."""
        return {
            "norm1": (self.width,),
            "wqkv": (self.width, 3, self.heads, self.head),
            "wo": (self.heads, self.head, self.width),
            "norm2": (self.width,),
            "w1": (self.width, 4 * self.width),
            "w2": (4 * self.width, self.width),
        }

    def block(self, x: jax.Array, p: Tree, around: Around) -> jax.Array:
        """A layer on `[batch, length, width]`."""
        q, k, v = jnp.einsum("btm,mchd->cbthd", norm(x, p["norm1"]), p["wqkv"])
        x = x + jnp.einsum("bthd,hdm->btm", attention(q, k, v), p["wo"])
        return x + jax.nn.gelu(norm(x, p["norm2"]) @ p["w1"]) @ p["w2"]


def shapes(config: Config) -> tuple[Tree, Tree, Tree]:
    """The shapes of the parameters, of the optimizer's state and of a batch."""
    c, stack = config, (config.layers,) if config.scanned else ()

    def weight(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16)

    block = jax.tree.map(lambda each: weight(*stack, *each), c.weights(), is_leaf=lambda node: isinstance(node, tuple))
    params = {
        "embed": weight(c.vocabulary, c.width),
        "blocks": block if c.scanned else [block for _ in range(c.layers)],
        "norm": weight(c.width),
    }
    tokens = jax.ShapeDtypeStruct((c.batch, c.length), jnp.int32)
    return params, state(params), {"x": tokens, "y": tokens}


def state(params: Tree) -> Tree:
    """The shapes of the optimizer's state."""
    return jax.eval_shape(OPTIMIZER.init, params)


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """RMSNorm, in float32."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return wide.astype(x.dtype) * scale[None, None]


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal softmax attention on `[batch, length, heads, head]`."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))[None, None]
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -1e9)).astype(q.dtype), v)


def forward(config: Config, params: Tree, tokens: jax.Array, around: Around) -> jax.Array:
    """Logits over the next token, for every position."""
    x = around(params["embed"][tokens], "rows")
    if config.scanned:

        @jax.checkpoint
        def layer(x: jax.Array, p: Tree) -> tuple[jax.Array, None]:
            return around(config.block(x, p, around), "rows"), None

        x, _ = jax.lax.scan(layer, x, params["blocks"])
    else:
        for p in params["blocks"]:
            x = around(config.block(x, p, around), "rows")
    return norm(x, params["norm"]) @ params["embed"].T


def train_step(config: Config, around: Around) -> Callable[[Tree, Tree, Tree], tuple[Tree, Tree, jax.Array]]:
    """The step: new parameters, new optimizer state, loss."""

    def loss(params: Tree, batch: Tree) -> jax.Array:
        logits = forward(config, params, batch["x"], around).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]))

    def train_step(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
        value, grads = jax.value_and_grad(loss)(params, batch)
        return *updated(params, opt, grads), value

    return train_step


def updated(params: Tree, opt: Tree, grads: Tree) -> tuple[Tree, Tree]:
    """The parameters and the optimizer's state after a step of AdamW."""
    updates, opt = OPTIMIZER.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt
