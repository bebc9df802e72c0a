"""The shortest use: a two-layer perceptron, its batch over four devices, its hidden units over two.

python -m examples.mlp
"""

import jax
import jax.numpy as jnp

import partita as pt


def mlp(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ w1) @ w2


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    key1, key2, key3 = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(key1, (512, 256))
    w1 = jax.random.normal(key2, (256, 1024)) / 16
    w2 = jax.random.normal(key3, (1024, 256)) / 32

    plan = pt.plan(mlp, pt.Mesh(data=4, model=2), x, w1, w2)
    plan = plan.tile("x", 0, "data").tile("w1", 1, "model")  # the layouts of w2 and of the result follow
    print(plan.layout("**"))
    print(plan.counts())

    y = plan.compile()(x, w1, w2)
    print("largest difference:", float(jnp.max(jnp.abs(y - mlp(x, w1, w2)))))


if __name__ == "__main__":
    main()
