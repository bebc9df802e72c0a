"""Models that the tests partition: plain JAX functions, without Partita.

The transformer has nine parameter tensors a block, a tied embedding and no final normalisation, so that with `L` layers
there are `P = 9L + 1` parameters, of which ZeRO shards `S = 4L + 1` (four matrices a block and the embedding). The
closed forms of collectives in the tests use these two letters.
"""

# JAX annotates `einsum`, `tree.map` and `grad` only in part.
# pyright: basic

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

Tree: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Transformer:
    """The sizes of a transformer; `shapes` and `arrays` make the arguments of its `train_step`."""

    layers: int
    width: int = 16
    heads: int = 4
    head: int = 4
    hidden: int = 32
    vocabulary: int = 32
    length: int = 8
    batch: int = 16
    dtype: str = "float32"

    @property
    def parameters(self) -> int:
        """P: how many parameter tensors there are."""
        return 9 * self.layers + 1

    @property
    def sharded(self) -> int:
        """S: how many of them are matrices, which ZeRO shards."""
        return 4 * self.layers + 1

    def parameter_shapes(self) -> Tree:
        """The tree of parameters, each leaf a shape."""
        vector = (self.width,)
        block = {
            "ln1": {"scale": vector, "bias": vector},
            "wqkv": (self.width, 3, self.heads, self.head),
            "wo": (self.heads, self.head, self.width),
            "ln2": {"scale": vector, "bias": vector},
            "w1": (self.width, self.hidden),
            "w2": (self.hidden, self.width),
            "b2": vector,
        }
        return {"embed": (self.vocabulary, self.width), "blocks": [block] * self.layers}

    def shapes(self) -> tuple[Tree, "Adam", "Batch"]:
        """Parameters, optimizer state and batch as `jax.ShapeDtypeStruct`s."""

        def structs(dtype: str) -> Tree:
            return jax.tree.map(
                lambda shape: jax.ShapeDtypeStruct(shape, dtype),
                self.parameter_shapes(),
                is_leaf=lambda node: isinstance(node, tuple),
            )

        tokens = jax.ShapeDtypeStruct((self.batch, self.length), jnp.int32)
        state = Adam(structs("float32"), structs("float32"), jax.ShapeDtypeStruct((), jnp.int32))
        return structs(self.dtype), state, Batch(tokens, tokens)

    def arrays(self, seed: int = 0) -> tuple[Tree, "Adam", "Batch"]:
        """The same with random values: a state as it is in the middle of a training."""
        random = np.random.default_rng(seed)

        def draw(struct: jax.ShapeDtypeStruct) -> Tree:
            return jnp.asarray(random.normal(0.0, 0.3, struct.shape), struct.dtype)

        params, state, batch = self.shapes()
        tokens = random.integers(0, self.vocabulary, (2, *batch.x.shape))
        moments = jax.tree.map(draw, (state.m, state.v))
        opt = Adam(moments[0], jax.tree.map(jnp.square, moments[1]), jnp.asarray(3, jnp.int32))
        return jax.tree.map(draw, params), opt, Batch(jnp.asarray(tokens[0]), jnp.asarray(tokens[1]))


class Adam(NamedTuple):
    """Adam's state: two trees that mirror the parameters, and the count of steps."""

    m: Tree
    v: Tree
    count: Tree


class Batch(NamedTuple):
    """Tokens and the tokens that follow them."""

    x: Tree
    y: Tree


def layer_norm(x: jax.Array, norm: Tree) -> jax.Array:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * norm["scale"][None, None] + norm["bias"][None, None]


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal softmax attention on `[batch, length, heads, head]`."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(q.dtype)
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))[None, None]
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def block(x: jax.Array, p: Tree) -> jax.Array:
    qkv = jnp.einsum("btm,mchd->cbthd", layer_norm(x, p["ln1"]), p["wqkv"])
    x = x + jnp.einsum("bthd,hdm->btm", attention(qkv[0], qkv[1], qkv[2]), p["wo"])
    return x + jax.nn.gelu(layer_norm(x, p["ln2"]) @ p["w1"]) @ p["w2"] + p["b2"][None, None]


def loss(params: Tree, batch: Batch) -> jax.Array:
    x = params["embed"][batch.x]
    for p in params["blocks"]:
        x = block(x, p)
    logs = jax.nn.log_softmax(x @ params["embed"].T, axis=-1)
    return -jnp.mean(jnp.take_along_axis(logs, batch.y[..., None], axis=-1))


def adam(params: Tree, grads: Tree, opt: Adam, rate: float = 1e-3) -> tuple[Tree, Adam]:
    """Adam written by hand, so that the tests do not depend on how a library spells it."""
    count = opt.count + 1
    step = count.astype(jnp.float32)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt.m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * jnp.square(g), opt.v, grads)
    scale1, scale2 = 1 / (1 - 0.9**step), 1 / (1 - 0.99**step)

    def update(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        return p - (rate * (m * scale1) / (jnp.sqrt(v * scale2) + 1e-8)).astype(p.dtype)

    return jax.tree.map(update, params, m, v), Adam(m, v, count)


def train_step(params: Tree, opt: Adam, batch: Batch) -> tuple[Tree, Adam, jax.Array]:
    """One step: new parameters, new optimizer state, loss."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    params, opt = adam(params, grads, opt)
    return params, opt, value


def stacked_loss(params: Tree, batch: Batch) -> jax.Array:
    """The same transformer with its blocks stacked and run by a `scan`."""
    x, _ = jax.lax.scan(lambda x, p: (block(x, p), None), params["embed"][batch.x], params["blocks"])
    logs = jax.nn.log_softmax(x @ params["embed"].T, axis=-1)
    return -jnp.mean(jnp.take_along_axis(logs, batch.y[..., None], axis=-1))


def stack(params: Tree) -> Tree:
    """Parameters of `train_step` --> parameters of `stacked_loss`: one block whose leaves lead with the layers."""
    return {"embed": params["embed"], "blocks": jax.tree.map(lambda *leaves: jnp.stack(leaves), *params["blocks"])}


def chain(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    """PartIR's matmul chain."""
    return (x @ w1) @ w2


def gram(x: jax.Array) -> jax.Array:
    """`x·xᵀ`: tiling the rows of `x` would tile both dims of the result."""
    return x @ x.T


def tanh_gram(x: jax.Array) -> jax.Array:
    """`x·tanh(2x)ᵀ`: the same conflict, behind an elementwise op."""
    return x @ jnp.tanh(2 * x).T
