"""A Flax classifier of sequences, as Flax's own examples write it: modules, a `TrainState`, an optax optimizer.

python -m examples.flax_transformer
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

import partita as pt

VOCABULARY, LENGTH, WIDTH, HEADS, HIDDEN, CLASSES, BATCH = 32, 8, 16, 2, 32, 8, 16

Batch = dict[str, jax.Array]


class Block(nn.Module):
    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + nn.MultiHeadDotProductAttention(self.heads, use_bias=False, name="attention")(nn.LayerNorm()(x))
        y = nn.gelu(nn.Dense(self.hidden, name="up")(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1], name="down")(y)


class Classifier(nn.Module):
    layers: int

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = nn.Embed(VOCABULARY, WIDTH, name="embed")(tokens)
        x = x + self.param("position", nn.initializers.normal(0.1), (1, LENGTH, WIDTH))
        for layer in range(self.layers):
            x = Block(HEADS, HIDDEN, name=f"block{layer}")(x)
        return nn.Dense(CLASSES, name="head")(nn.LayerNorm(name="norm")(x).mean(axis=1))


def create_state(seed: int = 0, layers: int = 2) -> TrainState:
    model = Classifier(layers)
    params = jax.jit(model.init)(jax.random.key(seed), jnp.zeros((1, LENGTH), jnp.int32))["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(1e-2))


def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, jax.Array]:
    def loss_fn(params: object) -> jax.Array:
        logits = state.apply_fn({"params": params}, batch["tokens"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def random_batch(seed: int = 1) -> Batch:
    keys = jax.random.split(jax.random.key(seed))
    tokens = jax.random.randint(keys[0], (BATCH, LENGTH), 0, VOCABULARY)
    return {"tokens": tokens, "label": jax.random.randint(keys[1], (BATCH,), 0, CLASSES)}


data = pt.DataParallel("data", inputs="batch")
heads = pt.Megatron(
    "model",
    column={"state/params/*/attention/query/kernel": 1, "state/params/*/up/kernel": 1},
    row={"state/params/*/down/kernel": 0},
)
zero = pt.ZeRO(3, "data", params="state/params", optimizer="state/opt_state")

WAYS = {"data": [data], "heads": [data, heads], "zero": [data, heads, zero]}


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
