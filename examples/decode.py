"""Decoding with a cache of keys and values: heads over devices, or with one head of keys, the cache's batch or its positions.

python -m examples.decode
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import partita as pt

Tree = Any
END = 0


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of the model; `kv` heads of keys and values serve `heads` heads of queries."""

    kv: int = 8
    heads: int = 8
    layers: int = 1
    batch: int = 16
    length: int = 12
    width: int = 64
    head: int = 16
    vocabulary: int = 64


def attend(x: jax.Array, p: Tree, cache: Tree, at: jax.Array) -> tuple[jax.Array, Tree]:
    """Attention of one new token on those before it; its key and value are written into the cache."""
    new = {name: jnp.einsum("bm,mkd->bkd", x, p[f"w{name}"])[:, None] for name in ("k", "v")}
    cache = {name: jax.lax.dynamic_update_slice_in_dim(cache[name], new[name], at, axis=1) for name in ("k", "v")}
    q = jnp.einsum("bm,mkgd->bkgd", x, p["wq"]) * p["wq"].shape[-1] ** -0.5
    scores = jnp.einsum("bkgd,btkd->bkgt", q, cache["k"])
    past = jnp.arange(scores.shape[-1]) <= at
    weights = jax.nn.softmax(jnp.where(past[None, None, None], scores, -1e9), axis=-1)
    found = jnp.einsum("bkgt,btkd->bkgd", weights, cache["v"])
    return jnp.einsum("bkgd,kgdm->bm", found, p["wo"]), cache


def normal(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def logits(params: Tree, cache: list[Tree], token: jax.Array, at: jax.Array) -> tuple[jax.Array, list[Tree]]:
    """The logits of the token after position `at`, for each row of the batch."""
    x, after = params["embed"][token], list[Tree]()
    for p, kept in zip(params["layers"], cache, strict=True):
        found, kept = attend(normal(x), p, kept, at)
        x = x + found
        x = x + jax.nn.gelu(normal(x) @ p["w1"]) @ p["w2"]
        after.append(kept)
    return normal(x) @ params["out"], after


def decode(params: Tree, cache: list[Tree], first: jax.Array) -> tuple[jax.Array, list[Tree]]:
    """As many tokens after the first as the cache has room for: `[length, batch]`."""

    def step(carry: Tree, at: jax.Array) -> tuple[Tree, jax.Array]:
        token, cache = carry
        scores, cache = logits(params, cache, token, at)
        token = jnp.argmax(scores, axis=-1)
        return (token, cache), token

    (_, cache), tokens = jax.lax.scan(step, (first, cache), jnp.arange(cache[0]["k"].shape[1]))
    return tokens, cache


def decode_until_end(params: Tree, cache: list[Tree], first: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same until every row is at its end: the tokens, and the number of steps."""
    length = cache[0]["k"].shape[1]

    def going(carry: Tree) -> jax.Array:
        at, done = carry[0], carry[1]
        return (at < length) & ~jnp.all(done)

    def step(carry: Tree) -> Tree:
        at, done, token, cache, tokens = carry
        scores, cache = logits(params, cache, token, at)
        token = jnp.where(done, END, jnp.argmax(scores, axis=-1))
        return at + 1, done | (token == END), token, cache, jax.lax.dynamic_update_index_in_dim(tokens, token, at, 0)

    start = (jnp.asarray(0), jnp.zeros(first.shape, bool), first, cache, jnp.zeros((length, *first.shape), first.dtype))
    steps, _, _, _, tokens = jax.lax.while_loop(going, step, start)
    return tokens, steps


def surprise(params: Tree, cache: list[Tree], tokens: jax.Array) -> jax.Array:
    """The mean cross entropy of the given `[length, batch]` tokens, each given those before it."""

    def step(cache: list[Tree], given: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[list[Tree], jax.Array]:
        at, token, following = given
        scores, cache = logits(params, cache, token, at)
        return cache, -jnp.take_along_axis(jax.nn.log_softmax(scores), following[:, None], axis=-1)

    _, found = jax.lax.scan(step, cache, (jnp.arange(len(tokens) - 1), tokens[:-1], tokens[1:]))
    return jnp.mean(found)


def arguments(config: Config) -> tuple[Tree, list[Tree], jax.Array]:
    c, keys = config, iter(jax.random.split(jax.random.key(0), 6 * config.layers + 3))

    def weights(*shape: int, fan_in: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) * fan_in**-0.5

    def layer() -> Tree:
        return {
            "wq": weights(c.width, c.kv, c.heads // c.kv, c.head, fan_in=c.width),
            "wk": weights(c.width, c.kv, c.head, fan_in=c.width),
            "wv": weights(c.width, c.kv, c.head, fan_in=c.width),
            "wo": weights(c.kv, c.heads // c.kv, c.head, c.width, fan_in=c.heads * c.head),
            "w1": weights(c.width, 4 * c.width, fan_in=c.width),
            "w2": weights(4 * c.width, c.width, fan_in=4 * c.width),
        }

    ends = {"embed": weights(c.vocabulary, c.width, fan_in=1), "out": weights(c.width, c.vocabulary, fan_in=c.width)}
    params = {**ends, "layers": [layer() for _ in range(c.layers)]}
    cache = [{name: jnp.zeros((c.batch, c.length, c.kv, c.head)) for name in ("k", "v")} for _ in range(c.layers)]
    return params, cache, jax.random.randint(next(keys), (c.batch,), 1, c.vocabulary)


# Each head of keys with its queries, or all queries of the single head.
MULTI_HEAD = pt.Megatron("model", column={"params/**/w[qkv1]": 1}, row={"params/**/wo": 0, "params/**/w2": 0})
MULTI_QUERY = pt.Megatron("model", column={"params/**/wq": 2, "params/**/w1": 1}, row={"params/**/wo": 1, "params/**/w2": 0})
# The single head of keys is on every device; or, placed before the queries, each device has some rows of the batch.
BATCHED = pt.Tile({"cache": 0}, "model", held=True)
# Or each device has some of the positions, and the partial results are summed.
POSITIONS = pt.Tile({"cache": 1}, "model")

MESH = pt.Mesh(data=2, model=4)
WAYS = {
    "multi-head": (Config(), [MULTI_HEAD]),
    "multi-query, the cache on every device": (Config(kv=1), [MULTI_QUERY]),
    "multi-query, the cache by its batch": (Config(kv=1), [BATCHED, MULTI_QUERY]),
    "multi-query, the cache by its positions": (Config(kv=1), [POSITIONS]),
}


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    for name, (config, tactics) in WAYS.items():
        args = arguments(config)
        print(f"{name}:")
        for loop, times in ((decode, f"{config.length} steps"), (decode_until_end, "a step")):
            plan = pt.plan(loop, MESH, *args).apply(*tactics)
            kept = plan.layout("cache/0/k")["cache/0/k"]
            sent = {kind: count for kind, count in plan.counts().items() if count}
            same = bool(jnp.all(plan.compile()(*args)[0] == jax.jit(loop)(*args)[0]))
            print(f"  {loop.__name__}: keys {kept}, {sent} in {times}; the same tokens as unpartitioned: {same}")


if __name__ == "__main__":
    main()
