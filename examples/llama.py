"""A Llama-style model in plain JAX and optax, and its training: three tactics for batch, heads and parameters.

RoPE, grouped-query attention, SwiGLU, a tied head. The layers are in a `scan` with rematerialisation; the gradients of
micro-batches are added, clipped by their global norm, and given to adamw.

    python -m examples.llama
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

import partita as pt

Tree = Any

NORM = 1.0
ADAMW = optax.adamw(1e-3, b1=0.9, b2=0.95, weight_decay=0.1)
OPTIMIZER = optax.chain(optax.clip_by_global_norm(NORM), ADAMW)


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of the model and of a batch; each head of keys and values serves `group` heads of queries."""

    vocabulary: int = 50_257
    batch: int = 30
    length: int = 8
    layers: int = 4
    width: int = 32
    kv: int = 4
    group: int = 2
    head: int = 8
    hidden: int = 96


PARTS = 3
"""The micro-batches of a step."""


def init(config: Config, seed: int = 0) -> Tree:
    """Random parameters; the leading dim of each leaf of `layers` is the layers."""
    c, keys = config, iter(jax.random.split(jax.random.key(seed), 8))

    def normal(*shape: int, fan_in: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) * fan_in**-0.5

    layers = {
        "norm1": jnp.ones((c.layers, c.width)),
        "wq": normal(c.layers, c.width, c.kv, c.group, c.head, fan_in=c.width),
        "wk": normal(c.layers, c.width, c.kv, c.head, fan_in=c.width),
        "wv": normal(c.layers, c.width, c.kv, c.head, fan_in=c.width),
        "wo": normal(c.layers, c.kv, c.group, c.head, c.width, fan_in=2 * c.layers * c.kv * c.group * c.head),
        "norm2": jnp.ones((c.layers, c.width)),
        "gate": normal(c.layers, c.width, c.hidden, fan_in=c.width),
        "up": normal(c.layers, c.width, c.hidden, fan_in=c.width),
        "down": normal(c.layers, c.hidden, c.width, fan_in=2 * c.layers * c.hidden),
    }
    return {"embed": normal(c.vocabulary, c.width, fan_in=c.width), "layers": layers, "norm": jnp.ones(c.width)}


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale[None, None]


def rope(x: jax.Array) -> jax.Array:
    """Turns the pairs of each head by an angle that grows with the position: `[batch, length, ..., head]`."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * (1e4 ** (-jnp.arange(half) / half))[None]
    angles = angles.reshape(1, x.shape[1], *[1] * (x.ndim - 3), half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)], axis=-1)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention: queries `[batch, length, kv, group, head]`, keys and values `[batch, length, kv, head]`."""
    scores = jnp.einsum("bqkgd,btkd->bkgqt", q, k) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))[None, None, None]
    return jnp.einsum("bkgqt,btkd->bqkgd", jax.nn.softmax(jnp.where(causal, scores, -1e9)), v)


def layer(x: jax.Array, p: Tree) -> jax.Array:
    h = rms_norm(x, p["norm1"])
    q = rope(jnp.einsum("btm,mkgd->btkgd", h, p["wq"]))
    k = rope(jnp.einsum("btm,mkd->btkd", h, p["wk"]))
    v = jnp.einsum("btm,mkd->btkd", h, p["wv"])
    x = x + jnp.einsum("btkgd,kgdm->btm", attention(q, k, v), p["wo"])
    h = rms_norm(x, p["norm2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def loss(params: Tree, tokens: jax.Array) -> jax.Array:
    """Mean cross entropy of each next token of `[batch, length + 1]`."""
    x = params["embed"][tokens[:, :-1]]
    x, _ = jax.lax.scan(lambda x, p: (jax.checkpoint(layer)(x, p), None), x, params["layers"])
    logits = rms_norm(x, params["norm"]) @ params["embed"].T
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))


def train_step(params: Tree, opt: Tree, batch: jax.Array, parts: int = PARTS) -> tuple[Tree, Tree, jax.Array]:
    """One step of adamw on the mean gradient of `parts` micro-batches: new parameters, new optimizer state, loss."""

    def add(total: Tree, part: jax.Array) -> tuple[Tree, None]:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, part)), None

    zeros = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
    # Part i has every row that is i modulo `parts`, so that neighbouring rows, which one device has, are in all parts.
    total, _ = jax.lax.scan(add, zeros, batch.reshape(-1, parts, batch.shape[1]).swapaxes(0, 1))
    value, grads = jax.tree.map(lambda each: each / parts, total)
    updates, opt = OPTIMIZER.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, value


def arguments(config: Config) -> tuple[Tree, Tree, jax.Array]:
    """Parameters, the state of the optimizer, and random tokens."""
    params = init(config)
    tokens = jax.random.randint(jax.random.key(1), (config.batch, config.length + 1), 0, config.vocabulary)
    return params, OPTIMIZER.init(params), tokens


SIZES = Config()
MESH = pt.Mesh(data=2, model=4)
# The heads of keys and values, each with its queries; the hidden units.
COLUMN = {"params/layers/w[qkv]": 2, "params/layers/gate": 2, "params/layers/up": 2}
ROW = {"params/layers/wo": 1, "params/layers/down": 1}
TACTICS = [
    pt.DataParallel("data", inputs="batch"),
    pt.Megatron("model", column=COLUMN, row=ROW),
    pt.ZeRO(3, "data", params="params", optimizer="opt"),
]


def plan() -> pt.Plan:
    """The plan of a training step before its tactics: `partita shell examples/llama.py:plan`."""
    return pt.plan(train_step, MESH, *jax.eval_shape(lambda: arguments(SIZES)))


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    params, opt, batch = arguments(SIZES)
    plan = pt.plan(train_step, MESH, params, opt, batch).apply(*TACTICS)
    print(plan.layout("params"))
    print(plan.counts())

    step, alone = plan.compile(), jax.jit(train_step)
    expected = params, opt
    for _ in range(3):
        params, opt, value = step(params, opt, batch)
        *expected, wanted = alone(*expected, batch)
        print(f"loss {float(value):.6f}, unpartitioned {float(wanted):.6f}")


if __name__ == "__main__":
    main()
