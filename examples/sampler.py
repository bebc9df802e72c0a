"""Sampling from a diffusion model: the U-Net of `unet` in a loop over time steps, with random noise in each.

Three samplers of one model: DDPM in a `fori_loop`, DDIM in a `scan` that keeps the intermediate images, and DDIM in a
`while_loop` that ends as soon as the image is clean.

    python -m examples.sampler
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt
from partita.examples.unet import ALPHAS, STEPS, UNet, alpha_at, create_state, random_images

Tree = Any

BETAS = 1 - ALPHAS / np.concatenate([np.ones(1, np.float32), ALPHAS[:-1]])


def noise_at(params: Tree, x: jax.Array, time: jax.Array) -> jax.Array:
    """The noise that the model predicts in `x`, whose images are all at one time."""
    return UNet().apply({"params": params}, x, jnp.full(x.shape[:1], time, jnp.float32))


def ddpm(params: Tree, x: jax.Array, key: jax.Array) -> jax.Array:
    """Every step removes some noise and adds less (arXiv 2006.11239, algorithm 2)."""

    def step(number: int, x: jax.Array) -> jax.Array:
        time = STEPS - 1 - number
        beta, alpha = jnp.asarray(BETAS)[time], alpha_at(time)
        mean = (x - beta / jnp.sqrt(1 - alpha) * noise_at(params, x, time)) / jnp.sqrt(1 - beta)
        fresh = jax.random.normal(jax.random.fold_in(key, time), x.shape)
        return mean + jnp.where(time > 0, jnp.sqrt(beta), 0.0) * fresh

    return jax.lax.fori_loop(0, STEPS, step, x)


def denoise(params: Tree, x: jax.Array, time: jax.Array, earlier: jax.Array) -> jax.Array:
    """One step from a time to an earlier one (arXiv 2010.02502, equation 12 without noise)."""
    alpha, target = alpha_at(time), jnp.where(earlier < 0, 1.0, alpha_at(earlier))
    noise = noise_at(params, x, time)
    clean = (x - jnp.sqrt(1 - alpha) * noise) / jnp.sqrt(alpha)
    return jnp.sqrt(target) * clean + jnp.sqrt(1 - target) * noise


def ddim(params: Tree, x: jax.Array, stride: int = 2) -> tuple[jax.Array, jax.Array]:
    """Half of the steps; also returns the intermediate images."""
    times = jnp.arange(STEPS - 1, -1, -stride)

    def step(x: jax.Array, time: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = denoise(params, x, time, time - stride)
        return x, x

    return jax.lax.scan(step, x, times)


def until_clean(params: Tree, x: jax.Array, stride: int = 2) -> tuple[jax.Array, jax.Array]:
    """Like `ddim`, but it ends as soon as a step changes the images only a little; also returns that time."""

    def moves(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, time, change = state
        return (time >= 0) & (change > 1e-2)

    def step(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, time, _ = state
        after = denoise(params, x, time, time - stride)
        return after, time - stride, jnp.mean((after - x) ** 2)

    x, time, _ = jax.lax.while_loop(moves, step, (x, jnp.array(STEPS - 1), jnp.array(jnp.inf)))
    return x, time


data = pt.DataParallel("data", inputs="x")
heads = pt.Megatron("model", column={"params/attention/heads/query/kernel": 1, "params/*/conv1/kernel": 3})

WAYS = {"data": [data], "heads and channels": [data, heads], "zero": [data, pt.ZeRO(3, "data", params="params")]}


def arguments() -> tuple[Tree, jax.Array]:
    """Parameters, and the noise from which a sample starts."""
    return create_state().params, random_images()


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    mesh, (params, x), key = pt.Mesh(data=4, model=2), arguments(), jax.random.key(2)
    plan = pt.plan(ddpm, mesh, params, x, key)
    for name, tactics in WAYS.items():
        print(f"{name}: {plan.apply(*tactics).counts()}")
    sample = pt.jit(ddpm, mesh=mesh, tactics=WAYS["heads and channels"])
    images = sample(params, x, key)
    print(f"mean and deviation of the samples: {images.mean():.5f} {images.std():.5f}")


if __name__ == "__main__":
    main()
