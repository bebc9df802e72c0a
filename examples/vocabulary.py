"""A language model with its vocabulary over devices: no device ever holds a full row of the logits.

python -m examples.vocabulary
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import partita as pt

Tree = Any


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of the model and of a batch."""

    vocabulary: int = 512
    width: int = 32
    batch: int = 16
    length: int = 24


def logits(params: Tree, tokens: jax.Array) -> jax.Array:
    """Looks up each token, mixes it with those before it, and compares it with every token of the vocabulary."""
    x = params["in"][tokens]
    weights = jnp.tril(jnp.ones((tokens.shape[1],) * 2)) / jnp.arange(1, tokens.shape[1] + 1)[:, None]
    return jnp.tanh(jnp.einsum("ts,bsm->btm", weights, x) @ params["mix"]) @ params["out"].T


def loss(params: Tree, tokens: jax.Array) -> jax.Array:
    """Mean cross entropy of each token, given those before it."""
    scores, following = logits(params, tokens[:, :-1]), tokens[:, 1:]
    found = jnp.take_along_axis(scores, following[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(scores, axis=-1) - found)


def train_step(params: Tree, tokens: jax.Array) -> tuple[Tree, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - g, params, grads), value


def arguments(config: Config) -> tuple[Tree, jax.Array]:
    c, keys = config, jax.random.split(jax.random.key(0), 4)
    params = {
        "in": jax.random.normal(keys[0], (c.vocabulary, c.width)),
        "mix": jax.random.normal(keys[1], (c.width, c.width)) * c.width**-0.5,
        "out": jax.random.normal(keys[2], (c.vocabulary, c.width)) * c.width**-0.5,
    }
    return params, jax.random.randint(keys[3], (c.batch, c.length), 0, c.vocabulary)


DATA = pt.DataParallel("data", inputs="tokens")
VOCABULARY = pt.Tile({"params/in": 0, "params/out": 0}, "model")


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    params, tokens = arguments(Config())
    plan = pt.plan(train_step, pt.Mesh(data=2, model=4), params, tokens).apply(DATA, VOCABULARY)
    print(plan.layout("params"))
    for each in plan.collectives():
        print(each)

    train, alone = plan.compile(), jax.jit(train_step)
    expected = params
    for _ in range(3):
        params, value = train(params, tokens)
        expected, wanted = alone(expected, tokens)
        print(f"loss {float(value):.6f}, unpartitioned {float(wanted):.6f}")


if __name__ == "__main__":
    main()
