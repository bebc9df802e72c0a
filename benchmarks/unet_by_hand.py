"""The training step of `examples/unet.py` on one device's images: its part of the batch's noise, and means of the gradients."""

from typing import Any

import jax
import jax.numpy as jnp

from partita.examples import unet

Tree = Any


def train_step(state: unet.TrainState, images: jax.Array, key: jax.Array) -> tuple[unet.TrainState, jax.Array]:
    rows, first = images.shape[0], jax.lax.axis_index("data") * images.shape[0]
    whole = (rows * jax.lax.axis_size("data"), *images.shape[1:])

    def own(values: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice_in_dim(values, first, rows)

    time_key, noise_key = jax.random.split(key)
    time = own(jax.random.randint(time_key, whole[:1], 0, unet.STEPS))
    noise = own(jax.random.normal(noise_key, whole))
    alpha = unet.alpha_at(time)[:, None, None, None]
    noisy = jnp.sqrt(alpha) * images + jnp.sqrt(1 - alpha) * noise

    def loss_fn(params: Tree) -> jax.Array:
        return jnp.mean((state.apply_fn({"params": params}, noisy, time.astype(jnp.float32)) - noise) ** 2)

    loss, grads = jax.lax.pmean(jax.value_and_grad(loss_fn)(state.params), "data")
    return state.apply_gradients(grads=grads), loss
