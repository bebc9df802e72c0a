"""A ResNet in Flax, with batch normalisation and its running statistics, trained by SGD with momentum.

With data parallelism the statistics are those of the global batch, as on one device: each is summed over `data`.

    python -m examples.resnet
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state

import partita as pt

SIZE, FILTERS, CLASSES, BATCH = 8, 4, 4, 8

Tree = Any
Batch = dict[str, jax.Array]


class Norm(nn.BatchNorm):
    """Batch normalisation with the running statistics of a short training."""

    momentum: float = 0.9


class Block(nn.Module):
    filters: int
    stride: int = 1

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        y = nn.Conv(self.filters, (3, 3), self.stride, use_bias=False, name="conv1")(x)
        y = nn.relu(Norm(not train, name="norm1")(y))
        y = nn.Conv(self.filters, (3, 3), use_bias=False, name="conv2")(y)
        y = Norm(not train, name="norm2")(y)
        if x.shape != y.shape:
            x = nn.Conv(self.filters, (1, 1), self.stride, use_bias=False, name="project")(x)
            x = Norm(not train, name="norm")(x)
        return nn.relu(x + y)


class ResNet(nn.Module):
    stages: int
    filters: int = FILTERS

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        x = nn.Conv(self.filters, (3, 3), use_bias=False, name="stem")(x)
        x = nn.relu(Norm(not train, name="norm")(x))
        x = nn.max_pool(x, (3, 3), strides=(2, 2), padding="SAME")
        for stage in range(self.stages):
            x = Block(self.filters * 2**stage, 1 if stage == 0 else 2, name=f"block{stage}")(x, train)
        return nn.Dense(CLASSES, name="head")(x.mean(axis=(1, 2)))


class TrainState(train_state.TrainState):
    batch_stats: Tree


def create_state(stages: int = 2, filters: int = FILTERS) -> TrainState:
    model = ResNet(stages, filters)
    variables = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, SIZE, SIZE, 3)))
    return TrainState.create(apply_fn=model.apply, tx=optax.sgd(0.1, momentum=0.9), **variables)


def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, jax.Array]:
    def loss_fn(params: Tree) -> tuple[jax.Array, Tree]:
        variables = {"params": params, "batch_stats": state.batch_stats}
        logits, changed = state.apply_fn(variables, batch["image"], mutable=["batch_stats"])
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
        return loss, changed["batch_stats"]

    (loss, batch_stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=batch_stats), loss


def random_batch(batch: int = BATCH, size: int = SIZE) -> Batch:
    keys = jax.random.split(jax.random.key(1))
    image = jax.random.normal(keys[0], (batch, size, size, 3))
    return {"image": image, "label": jax.random.randint(keys[1], (batch,), 0, CLASSES)}


data = pt.DataParallel("data", inputs="batch")
# The channels between the two convolutions of a block, which `conv1` makes and `conv2` sums over.
channels = pt.Megatron("model", column={"state/params/block*/conv1/kernel": 3})
zero = pt.ZeRO(3, "data", params="state/params", optimizer="state/opt_state")

WAYS = {"data": [data], "channels": [data, channels], "zero": [data, zero]}


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    mesh, state, batch = pt.Mesh(data=4, model=2), create_state(), random_batch()
    plan = pt.plan(train_step, mesh, state, batch)
    for name, tactics in WAYS.items():
        print(f"{name}: {plan.apply(*tactics).counts()}")
    step = pt.jit(train_step, mesh=mesh, tactics=WAYS["zero"])
    for _ in range(2):
        state, loss = step(state, batch)
        print(f"loss {loss:.6f}")


if __name__ == "__main__":
    main()
