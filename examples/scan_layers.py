"""A stack of layers in a `scan`: with ZeRO-3 each trip gathers the weights of only its layer.

python -m examples.scan_layers
"""

from typing import Any

import jax
import jax.numpy as jnp

import partita as pt

LAYERS, BATCH, WIDTH, HIDDEN = 6, 64, 128, 512

Tree = Any


def loss(params: Tree, x: jax.Array) -> jax.Array:
    """A residual stack; the leading dim of each leaf of `params` is the layers."""

    def layer(x: jax.Array, p: Tree) -> tuple[jax.Array, None]:
        return x + jnp.tanh(x @ p["w1"]) @ p["w2"], None

    x, _ = jax.lax.scan(layer, x, params)
    return jnp.mean(x * x)


def train_step(params: Tree, x: jax.Array) -> tuple[Tree, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def arguments() -> tuple[Tree, jax.Array]:
    key1, key2, key3 = jax.random.split(jax.random.key(0), 3)
    w1 = jax.random.normal(key1, (LAYERS, WIDTH, HIDDEN)) * WIDTH**-0.5
    w2 = jax.random.normal(key2, (LAYERS, HIDDEN, WIDTH)) * HIDDEN**-0.5
    return {"w1": w1, "w2": w2}, jax.random.normal(key3, (BATCH, WIDTH))


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    params, x = arguments()
    plan = pt.plan(train_step, pt.Mesh(data=8), params, x)
    plan = plan.apply(pt.DataParallel("data", inputs="x")).apply(pt.ZeRO(3, "data", params="params"))
    print(plan.layout("params"))
    print(plan.counts())

    step = plan.compile()
    alone = jax.jit(train_step)
    expected = params
    for _ in range(5):
        params, value = step(params, x)
        expected, wanted = alone(expected, x)
        print(f"loss {float(value):.6f}, unpartitioned {float(wanted):.6f}")


if __name__ == "__main__":
    main()
