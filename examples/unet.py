"""A U-Net with attention, in Flax, which predicts the noise in a diffusion model, and its training step.

It halves and doubles the image by convolutions, and has concatenated skips, group norms, self-attention and a time embedding.

    python -m examples.unet
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

import partita as pt

SIZE, CHANNELS, HEADS, GROUPS, BATCH, STEPS = 8, 8, 2, 2, 8, 8

Tree = Any
Batch = dict[str, jax.Array]


def time_embedding(time: jax.Array, width: int) -> jax.Array:
    """Sines and cosines of the time, `[batch] -> [batch, width]` (arXiv 1706.03762)."""
    frequencies = jnp.exp(-jnp.log(1e4) * jnp.arange(width // 2) / (width // 2))
    angles = time[:, None] * frequencies[None]
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


class ResBlock(nn.Module):
    channels: int

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        y = nn.Conv(self.channels, (3, 3), name="conv1")(nn.silu(nn.GroupNorm(GROUPS)(x)))
        y = y + nn.Dense(self.channels, name="time")(nn.silu(time))[:, None, None]
        y = nn.Conv(self.channels, (3, 3), name="conv2")(nn.silu(nn.GroupNorm(GROUPS)(y)))
        return y + (x if x.shape == y.shape else nn.Conv(self.channels, (1, 1), name="project")(x))


class Attention(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        batch, height, width, channels = x.shape
        y = nn.GroupNorm(GROUPS)(x).reshape(batch, height * width, channels)
        y = nn.MultiHeadDotProductAttention(HEADS, use_bias=False, name="heads")(y)
        return x + y.reshape(x.shape)


class UNet(nn.Module):
    channels: int = CHANNELS

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        time = nn.Dense(2 * self.channels, name="time")(time_embedding(time, self.channels))
        x = nn.Conv(self.channels, (3, 3), name="first")(x)
        fine = ResBlock(self.channels, name="down")(x, time)
        x = nn.Conv(2 * self.channels, (3, 3), strides=2, name="halve")(fine)
        x = Attention(name="attention")(x)
        x = nn.ConvTranspose(self.channels, (2, 2), strides=(2, 2), name="double")(x)
        x = ResBlock(self.channels, name="up")(jnp.concatenate([x, fine], axis=-1), time)
        return nn.Conv(3, (3, 3), name="last")(nn.silu(nn.GroupNorm(GROUPS, name="norm")(x)))


ALPHAS = np.cumprod(1 - np.linspace(1e-3, 0.2, STEPS)).astype(np.float32)


def alpha_at(time: jax.Array) -> jax.Array:
    """The fraction of an image that is left at a time; the rest is noise."""
    return jnp.asarray(ALPHAS)[time]


def create_state(channels: int = CHANNELS) -> TrainState:
    model = UNet(channels)
    params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, SIZE, SIZE, 3)), jnp.zeros(1))["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-4))


def train_step(state: TrainState, images: jax.Array, key: jax.Array) -> tuple[TrainState, jax.Array]:
    """One step of learning to predict the noise in images at random times (arXiv 2006.11239)."""
    time_key, noise_key = jax.random.split(key)
    time = jax.random.randint(time_key, images.shape[:1], 0, STEPS)
    noise = jax.random.normal(noise_key, images.shape)
    alpha = alpha_at(time)[:, None, None, None]
    noisy = jnp.sqrt(alpha) * images + jnp.sqrt(1 - alpha) * noise

    def loss_fn(params: Tree) -> jax.Array:
        return jnp.mean((state.apply_fn({"params": params}, noisy, time.astype(jnp.float32)) - noise) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def random_images(batch: int = BATCH, size: int = SIZE) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (batch, size, size, 3))


data = pt.DataParallel("data", inputs="images")
heads = pt.Megatron("model", column={"state/params/attention/heads/query/kernel": 1})
channels = pt.Megatron("model", column={"state/params/*/conv1/kernel": 3})
zero = pt.ZeRO(3, "data", params="state/params", optimizer="state/opt_state")

WAYS = {"data": [data], "heads and channels": [data, heads, channels], "zero": [data, zero]}


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    mesh, state, images, key = pt.Mesh(data=4, model=2), create_state(), random_images(), jax.random.key(2)
    plan = pt.plan(train_step, mesh, state, images, key)
    for name, tactics in WAYS.items():
        print(f"{name}: {plan.apply(*tactics).counts()}")
    step = pt.jit(train_step, mesh=mesh, tactics=WAYS["heads and channels"])
    for _ in range(2):
        state, loss = step(state, images, key)
        print(f"loss {loss:.6f}")


if __name__ == "__main__":
    main()
