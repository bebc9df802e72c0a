"""Small programs tiled in space, beside `jax.jit` with the same input and output shardings: collectives and bytes.

    python -m benchmarks.windows

Every program is compared with the unpartitioned one.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

import partita as pt

from .case import MESH, Case
from .report import Table

# The programs.


def conv(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """A convolution of images `[batch, rows, columns, channels]`."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=layout)


def halved(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return conv(x, kernel, 2)


def stacked(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return conv(pt.tag(jax.nn.relu(conv(x, kernel)), "h"), kernel)


def pooled(x: jax.Array) -> jax.Array:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def pool_gradient(x: jax.Array) -> jax.Array:
    return jax.grad(lambda x: jnp.sum(pooled(x) ** 2))(x)


def stencil(u: jax.Array) -> jax.Array:
    """Eight steps of the heat equation, zero at both ends."""
    for step in range(8):
        beyond = jnp.pad(u, 1)
        u = pt.tag(u + 0.1 * (beyond[2:] - 2 * u + beyond[:-2]), f"u{step}")
    return u


def with_fixed_ends(u: jax.Array) -> jax.Array:
    """The same, written as an update of the inner points: the ends keep their values."""
    for _ in range(8):
        u = u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))
    return u


def rolled(u: jax.Array) -> jax.Array:
    return jnp.roll(u, 1)


def every_other(u: jax.Array) -> jax.Array:
    return u[::2]


def differences(u: jax.Array) -> jax.Array:
    return u[1:] - u[:-1]


def padded_differences(u: jax.Array) -> jax.Array:
    """Differences on as many points as there are values."""
    return jnp.diff(u, append=0.0)


def joined(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.concatenate([x, y])


def best(logits: jax.Array) -> jax.Array:
    return jnp.argmax(logits, axis=-1)


def best_eight(logits: jax.Array) -> Sequence[jax.Array]:
    return jax.lax.top_k(logits, 8)


def cases() -> list[Case]:
    key = jax.random.key(0)
    image, kernel = jax.random.normal(key, (1, 64, 32, 4)), jax.random.normal(key, (3, 3, 4, 4)) / 6
    line, logits = jnp.sin(jnp.arange(512.0)), jax.random.normal(key, (8, 8192))
    rows, points, vocabulary = (pt.Tile(dims, "data") for dims in ({"x": 1}, {"u": 0}, {"logits": 1}))
    padded_points = pt.Tile({"u": 0}, "data", padded=True)
    return [
        Case("convolution, 3 x 3", conv, [image, kernel], [rows]),
        Case("convolution, 3 x 3, stride 2", halved, [image, kernel], [rows]),
        Case("two convolutions", stacked, [image, kernel], [rows]),
        Case("two convolutions, widened", stacked, [image, kernel], [pt.Widen(["h"]), rows]),
        Case("stencil, 8 steps", stencil, [line], [points]),
        Case("stencil, 8 steps, widened", stencil, [line], [pt.Widen([f"u{step}" for step in range(7)]), points]),
        Case("stencil with fixed ends, 8 steps, padded", with_fixed_ends, [line], [padded_points]),
        Case("roll by 1", rolled, [line], [points]),
        Case("pool, 2 x 2", pooled, [image], [rows]),
        Case("gradient of a pool, 2 x 2", pool_gradient, [image], [rows]),
        Case("x[::2]", every_other, [line], [points]),
        Case("differences, 511 of 512", differences, [line], [padded_points]),
        Case("differences, 512 of 512", padded_differences, [line], [padded_points]),
        Case("concatenate along the tiled dim", joined, [line, line + 1], [pt.Tile({"x": 0, "y": 0}, "data")]),
        Case("argmax over a tiled vocabulary", best, [logits], [vocabulary]),
        Case("top_k over a tiled vocabulary", best_eight, [logits], [vocabulary]),
    ]


def tables() -> list[Table]:
    jax.config.update("jax_num_cpu_devices", MESH.size)
    return [
        Table(
            "windows",
            "Programs tiled in space, on eight host devices",
            ["", "partita", "jit", "bytes, partita", "bytes, jit"],
            [case.row() for case in cases()],
            [
                "`jit`: jax.jit with the same input and output shardings, Auto axes.",
                "Its collectives are those of the program that XLA compiles.",
                "Bytes are those that one device receives in a call.",
            ],
        )
    ]


if __name__ == "__main__":
    for table in tables():
        table.show()
        table.write()
