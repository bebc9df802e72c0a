"""A mixture of experts (GShard, arXiv 2006.16668): tokens and experts over the same devices, four all_to_alls per step.

python -m examples.moe
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import partita as pt

Tree = Any
Layer = Callable[[Tree, jax.Array], jax.Array]


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of the model; each token goes to its `best` experts."""

    groups: int = 16
    tokens: int = 32
    width: int = 64
    experts: int = 8
    hidden: int = 128

    @property
    def capacity(self) -> int:
        """How many tokens of a group an expert takes: twice its fair share of all choices."""
        return 2 * BEST * self.tokens // self.experts


BEST = 2


def choices(x: jax.Array, gate: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The experts that each token prefers, the weights, and the token's position in each queue: `[group, choice * token]`.

    All first choices queue before the second ones.
    """
    chances, expert = jax.lax.top_k(jax.nn.softmax(x @ gate), BEST)
    chances = chances / jnp.sum(chances, axis=-1, keepdims=True)
    chances, expert = (each.swapaxes(1, 2).reshape(x.shape[0], -1) for each in (chances, expert))
    chosen = jax.nn.one_hot(expert, gate.shape[-1], dtype=jnp.int32)
    place = jnp.sum(chosen * (jnp.cumsum(chosen, axis=1) - 1), axis=-1)
    return chances, expert, place


def experts(x: jax.Array, p: Tree) -> jax.Array:
    """One perceptron per expert, on `[expert, group, slot, width]`."""
    h = jax.nn.relu(jnp.einsum("egcm,emf->egcf", x, p["w1"]) + p["b1"][:, None, None])
    return jnp.einsum("egcf,efm->egcm", h, p["w2"])


def mixture(params: Tree, x: jax.Array) -> jax.Array:
    """Sends tokens to experts by matmuls with masks of `[group, token, expert, slot]`; tokens without a slot are dropped."""
    count = params["gate"].shape[-1]
    capacity = 2 * BEST * x.shape[1] // count
    chances, expert, place = choices(x, params["gate"])
    slot = jax.nn.one_hot(expert, count)[..., None] * jax.nn.one_hot(place, capacity)[:, :, None]
    slot = slot.reshape(x.shape[0], BEST, x.shape[1], count, capacity)
    combine = jnp.einsum("gkt,gktec->gtec", chances.reshape(x.shape[0], BEST, x.shape[1]), slot)
    y = experts(jnp.einsum("gktec,gtm->egcm", slot, x), params["experts"])
    return x + jnp.einsum("gtec,egcm->gtm", combine, y)


def scattered_mixture(params: Tree, x: jax.Array) -> jax.Array:
    """The same layer, with the tokens scattered to the slots of their experts and gathered from there."""
    count = params["gate"].shape[-1]
    capacity = 2 * BEST * x.shape[1] // count
    chances, expert, place = choices(x, params["gate"])
    slot = jnp.where(place < capacity, expert * capacity + place, count * capacity)
    token = jnp.tile(jnp.arange(x.shape[1]), BEST)

    def send(x: jax.Array, slot: jax.Array) -> jax.Array:
        return jnp.zeros((count * capacity, x.shape[-1])).at[slot].set(x[token], mode="drop")

    def fetch(y: jax.Array, slot: jax.Array, chances: jax.Array) -> jax.Array:
        found = y.at[slot].get(mode="fill", fill_value=0) * chances[:, None]
        return jnp.zeros(x.shape[1:]).at[token].add(found)

    sent = jax.vmap(send)(x, slot).reshape(x.shape[0], count, capacity, x.shape[-1])
    y = experts(sent.swapaxes(0, 1), params["experts"]).swapaxes(0, 1)
    return x + jax.vmap(fetch)(y.reshape(x.shape[0], count * capacity, -1), slot, chances)


def train_step(params: Tree, batch: Tree, layer: Layer = mixture) -> tuple[Tree, jax.Array]:
    """A projection before the layer, and one step of gradient descent on all parameters."""

    def loss(params: Tree) -> jax.Array:
        y = layer(params, jnp.tanh(batch["x"] @ params["into"]))
        return jnp.mean((y - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def arguments(config: Config) -> tuple[Tree, Tree]:
    c, keys = config, jax.random.split(jax.random.key(0), 6)

    def normal(key: jax.Array, *shape: int) -> jax.Array:
        return jax.random.normal(key, shape) * shape[-2] ** -0.5

    params = {
        "into": normal(keys[0], c.width, c.width),
        "gate": normal(keys[1], c.width, c.experts),
        "experts": {
            "w1": normal(keys[2], c.experts, c.width, c.hidden),
            "b1": jnp.zeros((c.experts, c.hidden)),
            "w2": normal(keys[3], c.experts, c.hidden, c.width),
        },
    }
    x, y = (jax.random.normal(key, (c.groups, c.tokens, c.width)) for key in keys[4:])
    return params, {"x": x, "y": y}


TACTICS = [pt.ExpertParallel("data", experts="params/experts"), pt.DataParallel("data", inputs="batch")]


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    args = arguments(Config())
    plan = pt.plan(train_step, pt.Mesh(data=8), *args).apply(*TACTICS)
    print(plan.layout("params"))
    print(plan.counts())
    step = plan.compile()
    (_, loss), (_, expected) = step(*args), jax.jit(train_step)(*args)
    print(f"loss {float(loss):.6f}, unpartitioned {float(expected):.6f}")


if __name__ == "__main__":
    main()
