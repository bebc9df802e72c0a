"""`examples/decode.py` on one device's heads and hidden units: two sums in each layer and step."""

from typing import Any

import jax
import jax.numpy as jnp

from partita.examples import decode as model

Tree = Any


def decode(params: Tree, cache: list[Tree], first: jax.Array) -> tuple[jax.Array, list[Tree]]:
    def step(carry: Tree, at: jax.Array) -> tuple[Tree, jax.Array]:
        token, cache = carry
        scores, cache = _logits(params, cache, token, at)
        token = jnp.argmax(scores, axis=-1)
        return (token, cache), token

    (_, cache), tokens = jax.lax.scan(step, (first, cache), jnp.arange(cache[0]["k"].shape[1]))
    return tokens, cache


def _logits(params: Tree, cache: list[Tree], token: jax.Array, at: jax.Array) -> tuple[jax.Array, list[Tree]]:
    x, after = params["embed"][token], list[Tree]()
    for p, kept in zip(params["layers"], cache, strict=True):
        found, kept = model.attend(model.normal(x), p, kept, at)
        x = x + jax.lax.psum(found, "model")
        x = x + jax.lax.psum(jax.nn.gelu(model.normal(x) @ p["w1"]) @ p["w2"], "model")
        after.append(kept)
    return model.normal(x) @ params["out"], after
