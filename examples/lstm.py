"""An LSTM over a scan: the batch over devices, or the hidden units with all four gates of each.

python -m examples.lstm
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

    batch: int = 32
    length: int = 24
    features: int = 16
    hidden: int = 64


def cell(p: Tree, carry: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """One step: the dims of the weights are the inputs, the four gates, the hidden units."""
    h, c = carry
    gates = jnp.einsum("bf,fgh->bgh", x, p["wx"]) + jnp.einsum("bk,kgh->bgh", h, p["wh"]) + p["b"][None]
    write, keep, show = (jax.nn.sigmoid(gates[:, gate]) for gate in range(3))
    c = keep * c + write * jnp.tanh(gates[:, 3])
    h = show * jnp.tanh(c)
    return (h, c), h


def forward(params: Tree, x: jax.Array) -> jax.Array:
    """Predicts each next value from those before it: `[batch, length, features]` to the same."""
    start = jnp.zeros((2, x.shape[0], params["b"].shape[-1]))
    _, hidden = jax.lax.scan(lambda carry, x: cell(params, carry, x), (start[0], start[1]), x.swapaxes(0, 1))
    return jnp.einsum("tbh,hf->btf", hidden, params["out"])


def loss(params: Tree, batch: jax.Array) -> jax.Array:
    return jnp.mean((forward(params, batch[:, :-1]) - batch[:, 1:]) ** 2)


def train_step(params: Tree, batch: jax.Array) -> tuple[Tree, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def arguments(config: Config) -> tuple[Tree, jax.Array]:
    c, keys = config, jax.random.split(jax.random.key(0), 4)
    params = {
        "wx": jax.random.normal(keys[0], (c.features, 4, c.hidden)) * c.features**-0.5,
        "wh": jax.random.normal(keys[1], (c.hidden, 4, c.hidden)) * c.hidden**-0.5,
        "b": jnp.zeros((4, c.hidden)),
        "out": jax.random.normal(keys[2], (c.hidden, c.features)) * c.hidden**-0.5,
    }
    phase = jax.random.uniform(keys[3], (c.batch, 1, c.features)) * 6
    return params, jnp.sin(phase + jnp.arange(c.length + 1)[None, :, None] / 3)


MESH = pt.Mesh(data=4, model=2)
DATA = pt.DataParallel("data", inputs="batch")
# All four gates of a unit are on the device of the unit.
UNITS = pt.Tile({"params/wx": 2, "params/wh": 2, "params/b": 1}, "model")


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    params, batch = arguments(Config())
    plan = pt.plan(train_step, MESH, params, batch).apply(DATA, UNITS)
    print(plan.layout("params"))
    print(plan.counts())

    train, alone = plan.compile(), jax.jit(train_step)
    expected = params
    for _ in range(5):
        params, value = train(params, batch)
        expected, wanted = alone(expected, batch)
        print(f"loss {float(value):.6f}, unpartitioned {float(wanted):.6f}")


if __name__ == "__main__":
    main()
