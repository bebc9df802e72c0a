"""Small programs in the manner of those that users bring to issue trackers, because their sharding communicates too much.

Each is cited by its repository and number, and sharded as the issue describes. Beside each stand the bytes that theory asks
for: the rim that windows reach, the totals of folds and scans, or the elements that the device lacks that lacks most.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

import partita as pt

from .case import Case

FOUR = pt.Mesh(data=4)
RANDOM = np.random.default_rng(0)

Array = NDArray[np.float32]
SPLIT = ("query", "key", "value")


def spectra(x: jax.Array) -> jax.Array:
    return jnp.fft.fft(x, n=256, axis=1)


def inverses(x: jax.Array) -> jax.Array:
    return jax.vmap(jnp.linalg.inv)(x)


def shuffled(key: jax.Array, x: jax.Array) -> jax.Array:
    return jax.vmap(jax.random.permutation)(jax.random.split(key, x.shape[0]), x)


def running(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x, axis=-1)


def order(x: jax.Array) -> jax.Array:
    return jnp.argsort(x)


def largest(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return lax.top_k(x, 1)[0], lax.top_k(x, 4)[0]


def next_token(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.argmax(x @ w, axis=-1)


def likely(logits: jax.Array) -> list[jax.Array]:
    return lax.top_k(jax.nn.log_softmax(logits), 4)


def rolled(x: jax.Array) -> jax.Array:
    return jnp.roll(x, 1)


def first_rows_set(x: jax.Array, y: jax.Array) -> jax.Array:
    return x.at[0:3].set(y)


def joined(*parts: jax.Array) -> jax.Array:
    return jnp.concatenate(parts)


def joined_four(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> jax.Array:
    return joined(a, b, c, d)


def joined_two(a: jax.Array, b: jax.Array) -> jax.Array:
    return joined(a, b)


def swapped(x: jax.Array) -> jax.Array:
    return jnp.swapaxes(x, 0, 2).reshape(-1, x.shape[-1])


def halved(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def product_transposed(x: jax.Array, w: jax.Array) -> jax.Array:
    return (x @ w).T


def projected(x: jax.Array, w: jax.Array) -> dict[str, jax.Array]:
    return dict(zip(SPLIT, jnp.split(x @ w, len(SPLIT), axis=-1), strict=True))


def causal(x: jax.Array, taps: jax.Array) -> jax.Array:
    """Each position from itself and the three before it: `[batch, positions, channels]`, taps `[4, channels]`."""
    length = x.shape[1]
    padded = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    return sum((padded[:, i : i + length] * taps[i][None, None] for i in range(4)), jnp.zeros_like(x))


def table_gradient(table: jax.Array, ids: jax.Array) -> jax.Array:
    return jax.grad(lambda table: jnp.sum(jnp.tanh(table[ids])))(table)


def inner(u: jax.Array) -> jax.Array:
    return u[8:-8]


def framed(u: jax.Array) -> jax.Array:
    return jnp.pad(u, 8)


def along(value: str, dim: int, axis: str = "data") -> pt.Tactic:
    return pt.Tile({value: dim}, axis)


def draw(*shape: int) -> Array:
    return RANDOM.standard_normal(shape, np.float32)


# Long: a table, one program after another.
def cases() -> Sequence[tuple[Case, int]]:
    """The programs, each with the bytes that theory asks a device to receive."""
    key, ids = jax.random.key(0), RANDOM.integers(0, 512, (16, 8), np.int32)
    grid, sequences = pt.Mesh(a=4, b=2), pt.Mesh(dp=4, sp=2)
    transposed = [along("x", 0, "a"), along("w", 1, "b"), along("result", 0, "a"), along("result", 1, "b")]
    split = [along("w", 1, "model"), *(along(f"result/{name}", 1, "model") for name in SPLIT)]
    looked_up = [along("table", 0, "model"), along("ids", 0), along("result", 0, "model")]
    rows, four = [along("x", 0)], {"a": 0, "b": 0, "c": 0, "d": 0}
    return [
        (Case("jax-ml/jax#15680: FFT of each row", spectra, [draw(64, 100)], rows, FOUR), 0),
        (Case("jax-ml/jax#33230: inverses of a batch", inverses, [draw(4, 5, 5)], rows, FOUR), 0),
        (Case("jax-ml/jax#20381: shuffle of each row", shuffled, [key, draw(24, 64, 4)], rows), 0),
        (Case("jax-ml/jax#23052: x.at[0:3].set(y)", first_rows_set, [draw(16, 64), draw(3, 64)], rows, FOUR), 0),
        (
            Case(
                "jax-ml/jax#21403: cumsum along `sp`",
                running,
                [draw(8, 1024)],
                [along("x", 0, "dp"), along("x", 1, "sp")],
                sequences,
            ),
            2 * 4,
        ),
        (Case("jax-ml/jax#19271: top 1 and top 4", largest, [draw(2, 8192)], [along("x", 1)]), 7 * 2 * (1 + 4) * 4),
        (
            Case("tenstorrent/tt-mlir#8623: argmax of x @ w", next_token, [draw(1, 64), draw(64, 1024)], [along("w", 1)]),
            7 * (4 + 4),
        ),
        (
            Case("tenstorrent/tt-xla#5137: top 4 of log_softmax", likely, [draw(4, 8192)], [along("logits", 1)]),
            2 * 2 * 4 * 4 * 7 // 8 + 7 * 4 * 4 * (4 + 4),
        ),
        (Case("jax-ml/jax#35650: argsort", order, [draw(512)], rows), 7 * 64 * 4),
        (Case("jax-ml/jax#15773: roll by 1", rolled, [draw(32)], rows, FOUR), 4),
        (
            Case(
                "jax-ml/jax#24576: concatenate 4 and 12",
                joined_two,
                [draw(4), draw(12)],
                [pt.Tile({"a": 0, "b": 0}, "data")],
                pt.Mesh(data=4, model=2),
            ),
            3 * 4,
        ),
        (Case("openxla/xla#34710: concatenate four", joined_four, [draw(16, 8)] * 4, [pt.Tile(four, "data")]), 8 * 8 * 4),
        (
            Case(
                "sgl-project/sglang-jax#1096: split of fused q, k, v",
                projected,
                [draw(16, 32), draw(32, 96)],
                split,
                pt.Mesh(model=4),
            ),
            2 * 16 * 8 * 4,
        ),
        (
            Case("jax-ml/jax#30335: swapaxes and reshape", swapped, [draw(8, 2, 8, 3)], [*rows, along("result", 0)]),
            7 * 2 * 3 * 4,
        ),
        (Case("openxla/xla#4062: (x @ w).T", product_transposed, [draw(32, 64), draw(64, 32)], transposed, grid), 8 * 16 * 4),
        (
            Case(
                "jax-ml/jax#16894: conv, stride 2, kernel sharded",
                halved,
                [draw(8, 8, 8, 16), draw(3, 3, 16, 16)],
                [*rows, along("w", 3)],
            ),
            7 * 9 * 16 * 2 * 4,
        ),
        (
            Case("marin-community/marin#9118: causal convolution", causal, [draw(2, 64, 16), draw(4, 16)], [along("x", 1)]),
            3 * 2 * 16 * 4,
        ),
        (
            Case(
                "openxla/xla#42481: gradient of table[ids]",
                table_gradient,
                [draw(512, 16), ids],
                looked_up,
                pt.Mesh(data=4, model=2),
            ),
            2 * 3 * 64 * 16 * 4 + 32 * 16 * 4,
        ),
        (Case("EnzymeAD/Enzyme-JAX#587: u[8:-8]", inner, [draw(272, 16)], [along("u", 0)]), 6 * 16 * 4),
        (Case("EnzymeAD/Enzyme-JAX#822: pad by 8", framed, [draw(80)], [along("u", 0)], FOUR), 4 * 4),
    ]
