"""A U-Net of which the rows of one image are tiled over eight host devices: forward, and the gradient of a loss.

    python -m benchmarks.spatial_unet

It halves the image by strided convolutions and by a pool, doubles it by transposed convolutions, and concatenates skips. The
peers are `jax.jit` with the same shardings and a `shard_map` by hand, whose halos are exchanged by permutes. JAX derives the
gradient of both.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import partita as pt

from .case import MESH, Case, on_auto_axes, timed
from .report import Table

SIZE, CHANNELS, ROUNDS = 128, 8, 31

Params = dict[str, jax.Array]
Conv = Callable[..., jax.Array]
LAYOUT = ("NHWC", "HWIO", "NHWC")


def init() -> Params:
    """The kernels: 3 x 3, and 2 x 2 of the transposed convolutions."""
    c = CHANNELS
    shapes = {
        "first": (3, 3, 3, c),
        "fine": (3, 3, c, c),
        "halve": (3, 3, c, 2 * c),
        "middle": (3, 3, 2 * c, 2 * c),
        "coarse": (3, 3, 2 * c, 4 * c),
        "double": (2, 2, 4 * c, 2 * c),
        "merge": (3, 3, 4 * c, 2 * c),
        "double_again": (2, 2, 2 * c, c),
        "merge_again": (3, 3, 2 * c, c),
        "last": (3, 3, c, 3),
    }
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return {name: jax.nn.initializers.he_normal()(key, s) for (name, s), key in zip(shapes.items(), keys, strict=True)}


def conv(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def unet(params: Params, x: jax.Array, conv: Conv = conv) -> jax.Array:
    """An image of the size of `x`; a 3 x 3 convolution is what crosses from device to device."""
    fine = jax.nn.relu(conv(jax.nn.relu(conv(x, params["first"])), params["fine"]))
    x = jax.nn.relu(conv(fine, params["halve"], 2))
    middle = jax.nn.relu(conv(x, params["middle"]))
    x = jax.lax.reduce_window(middle, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(conv(x, params["coarse"]))
    x = jax.lax.conv_transpose(x, params["double"], (2, 2), "VALID", dimension_numbers=LAYOUT)
    x = jax.nn.relu(conv(jnp.concatenate([x, middle], axis=-1), params["merge"]))
    x = jax.lax.conv_transpose(x, params["double_again"], (2, 2), "VALID", dimension_numbers=LAYOUT)
    x = jax.nn.relu(conv(jnp.concatenate([x, fine], axis=-1), params["merge_again"]))
    return conv(x, params["last"])


def loss(params: Params, x: jax.Array, y: jax.Array, forward: Callable[..., jax.Array] = unet) -> jax.Array:
    return jnp.mean((forward(params, x) - y) ** 2)


def gradient(params: Params, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Params]:
    return jax.value_and_grad(loss)(params, x, y)


def conv_by_hand(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """`conv` of one device's rows: a row from either side, or with stride 2 the one row after them that is read."""
    down = [(i, i + 1) for i in range(MESH.size - 1)]
    up = [(i + 1, i) for i in range(MESH.size - 1)]
    parts = [x, jax.lax.ppermute(x[:, :1], "data", up)]
    if stride == 1:
        parts.insert(0, jax.lax.ppermute(x[:, -1:], "data", down))
    columns = (1, 1) if stride == 1 else (0, 1)
    x = jnp.concatenate(parts, axis=1)
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), [(0, 0), columns], dimension_numbers=LAYOUT)


def unet_by_hand(params: Params, x: jax.Array) -> jax.Array:
    return unet(params, x, conv_by_hand)


def gradient_by_hand(params: Params, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Params]:
    """Each device's share of the gradients, summed once."""
    shares = jax.value_and_grad(lambda params: loss(params, x, y, unet_by_hand) / MESH.size)(params)
    return jax.lax.psum(shares, "data")


def tables() -> list[Table]:
    jax.config.update("jax_num_cpu_devices", MESH.size)
    image, target = jax.random.normal(jax.random.key(1), (2, 1, SIZE, SIZE, 3))
    return [
        _table("unet_forward", "Forward", unet, unet_by_hand, [init(), image], P(None, "data")),
        _table("unet_gradient", "Gradient", gradient, gradient_by_hand, [init(), image, target], P()),
    ]


def _table(name: str, what: str, function: Callable[..., Any], hand: Callable[..., Any], args: list[Any], out: P) -> Table:
    rows = [P(None, "data")] * (len(args) - 1)
    case = Case(name, function, args, [pt.Tile({"x": 1}, "data")])
    mesh = on_auto_axes(jax.tree.leaves(case.shardings[1])[0]).mesh
    mapped = jax.shard_map(hand, mesh=mesh, in_specs=(P(), *rows), out_specs=out, check_vma=False)
    title = f"{what} of a U-Net, one image of {SIZE} x {SIZE}, rows over eight host devices"
    return timed(name, title, case, jax.jit(mapped), ROUNDS)


if __name__ == "__main__":
    for table in tables():
        table.show()
        table.write()
