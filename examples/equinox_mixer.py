"""An MLP-Mixer in Equinox, with the training step of Equinox's tutorials: `filter_jit`, `filter_value_and_grad`, optax.

An Equinox model is a tree that holds more than arrays: activation functions, rates of dropout, flags. `jax.jit` takes only
arrays, and so does Partita. `eqx.partition` separates the two; the model and its step stay as they are.

    python -m examples.equinox_mixer
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import optax

import partita as pt

SIZE, PATCH, WIDTH, HIDDEN, CLASSES, BATCH = 8, 2, 8, 16, 4, 16

OPTIMIZER = optax.adam(1e-2)

Tree = Any


class Mixer(eqx.Module):
    """Mixes along the patches, then along the channels, of `[width, patches]`."""

    patches: eqx.nn.MLP
    channels: eqx.nn.MLP
    norms: list[eqx.nn.LayerNorm]
    dropout: eqx.nn.Dropout

    def __init__(self, width: int, patches: int, key: jax.Array) -> None:
        key1, key2 = jax.random.split(key)
        self.patches = eqx.nn.MLP(patches, patches, HIDDEN, depth=1, activation=jax.nn.gelu, key=key1)
        self.channels = eqx.nn.MLP(width, width, HIDDEN, depth=1, activation=jax.nn.gelu, key=key2)
        self.norms = [eqx.nn.LayerNorm((width, patches)) for _ in range(2)]
        self.dropout = eqx.nn.Dropout(0.1)

    def __call__(self, x: jax.Array, key: jax.Array) -> jax.Array:
        x = x + self.dropout(jax.vmap(self.patches)(self.norms[0](x)), key=key)
        return x + jax.vmap(self.channels, in_axes=1, out_axes=1)(self.norms[1](x))


class Classifier(eqx.Module):
    embed: eqx.nn.Conv2d
    blocks: list[Mixer]
    head: eqx.nn.Linear

    def __init__(self, blocks: int, key: jax.Array) -> None:
        first, last, *keys = jax.random.split(key, blocks + 2)
        self.embed = eqx.nn.Conv2d(3, WIDTH, PATCH, stride=PATCH, key=first)
        self.blocks = [Mixer(WIDTH, (SIZE // PATCH) ** 2, each) for each in keys]
        self.head = eqx.nn.Linear(WIDTH, CLASSES, key=last)

    def __call__(self, image: jax.Array, key: jax.Array) -> jax.Array:
        x = self.embed(image).reshape(WIDTH, -1)
        for block, each in zip(self.blocks, jax.random.split(key, len(self.blocks)), strict=True):
            x = block(x, each)
        return self.head(x.mean(axis=1))


def loss_fn(model: Classifier, images: jax.Array, labels: jax.Array, key: jax.Array) -> jax.Array:
    logits = jax.vmap(model)(images, jax.random.split(key, len(images)))
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@eqx.filter_jit
def make_step(
    model: Classifier, opt_state: Tree, images: jax.Array, labels: jax.Array, key: jax.Array
) -> tuple[Classifier, Tree, jax.Array]:
    loss, grads = eqx.filter_value_and_grad(loss_fn)(model, images, labels, key)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), opt_state, loss


# --- and partitioned: the arrays are an argument, the rest of the tree is closed over ---------------------------------------


def step(
    static: Tree, params: Tree, opt_state: Tree, images: jax.Array, labels: jax.Array, key: jax.Array
) -> tuple[Tree, Tree, jax.Array]:
    model, opt_state, loss = make_step(eqx.combine(params, static), opt_state, images, labels, key)
    return eqx.filter(model, eqx.is_array), opt_state, loss


data = pt.DataParallel("data", inputs=["images", "labels"])
hidden = pt.Megatron("model", column={"params/blocks/*/*/layers/0/weight": 0}, row={"params/blocks/*/*/layers/1/weight": 1})
zero = pt.ZeRO(3, "data", params="params", optimizer="opt_state")

WAYS = {"data": [data], "hidden": [data, hidden], "zero": [data, zero]}


def create(blocks: int = 2) -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """The step with the static part of the model, and its arguments: parameters, optimizer state, images, labels, a key."""
    model_key, image_key, label_key, key = jax.random.split(jax.random.key(0), 4)
    params, static = eqx.partition(Classifier(blocks, model_key), eqx.is_array)
    images = jax.random.normal(image_key, (BATCH, 3, SIZE, SIZE))
    labels = jax.random.randint(label_key, (BATCH,), 0, CLASSES)
    return partial(step, static), (params, OPTIMIZER.init(params), images, labels, key)


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    mesh, (function, (params, opt_state, *batch)) = pt.Mesh(data=4, model=2), create()
    plan = pt.plan(function, mesh, params, opt_state, *batch)
    for name, tactics in WAYS.items():
        print(f"{name}: {plan.apply(*tactics).counts()}")
    train = pt.jit(function, mesh=mesh, tactics=WAYS["zero"])
    for _ in range(2):
        params, opt_state, loss = train(params, opt_state, *batch)
        print(f"loss {loss:.6f}")


if __name__ == "__main__":
    main()
