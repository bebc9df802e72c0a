"""What ranges are for, beside `jax.jit` with the same input and output shardings: collectives, bytes, the largest array.

    python -m benchmarks.ranges

Redistributions, windows, folds and reshapes of which theory says what has to be sent, and programs from issue trackers. Every
program is compared with the unpartitioned one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import partita as pt

from . import trackers
from .case import Case
from .report import Cell, Table
from .trackers import along, draw
from .windows import conv, halved, rolled, stacked, stencil

DEVICES = 24
COLUMNS = (
    *("", "mesh", "partita", "jit", "theory, bytes", "bytes, partita", "bytes, jit"),
    *("largest array, partita", "largest array, jit"),
)


@dataclass(frozen=True, repr=False)
class Spread(pt.Tactic):
    """Asks for the layout of a value on several axes at once, `{axis: dim}`, so that all of them may change places."""

    value: str
    dims: Mapping[str, int]

    def seeds(self, plan: pt.Plan) -> Iterator[Any]:
        for axis, dim in self.dims.items():
            yield from pt.Tile({self.value: dim}, axis).seeds(plan)


def same(x: jax.Array) -> jax.Array:
    return x * 1.0


def squared(x: jax.Array) -> jax.Array:
    return x.reshape(4, 4)


def micro_batches(x: jax.Array) -> jax.Array:
    return x.reshape(2, 4, 2048)


def merged(x: jax.Array) -> jax.Array:
    return x.reshape(64, 2048)


def summed(x: jax.Array) -> jax.Array:
    return jnp.tanh(x[:17]).sum(0)


def running(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x)


def ordered(x: jax.Array) -> jax.Array:
    return jnp.sort(x)


def grouped(x: jax.Array, kernel: jax.Array) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=2)


def across_reshapes(plan: pt.Plan) -> pt.Plan:
    return plan.propagate("data", split=True)


def laws() -> Sequence[tuple[Case, int]]:
    """Cases of which theory says what has to be sent, each with the bytes that a device then receives."""
    image, kernel, line, point = draw(1, 64, 32, 4), draw(3, 3, 4, 4) / 6, draw(512), 4
    row, rows, points, batch = 32 * 4 * 4, along("x", 1), along("u", 0), along("x", 0)
    axes, prime = pt.Mesh(x1=2, x2=2, y1=3, y2=2), pt.Mesh(x=2, y=3)
    here = [along("x", 0, "x1"), along("x", 0, "x2"), along("x", 1, "y1"), along("x", 1, "y2")]
    apart = [along("x", 0, "x"), pt.Replicate("result", "x"), along("result", 0, "y")]
    cube = [along("x", 0, "y"), along("x", 2, "x"), along("result", 1, "x"), along("result", 1, "y")]
    wide = pt.Widen([f"u{step}" for step in range(7)])
    there = Spread("result", {"y1": 0, "y2": 0, "x1": 1, "x2": 1})
    return [
        (Case("[x*3] to [y*2]", same, [draw(6)], apart, prime), 2 * point),
        (Case("12 x 12, [x1*x2*3, y1*y2*2] to [y1*y2*2, x1*x2*3]", same, [draw(12, 12)], [*here, there], axes), 6 * point),
        (Case("16 x 16 x 16, [y, -, x] to [-, x*y, -]", same, [draw(16, 16, 16)], cube, pt.Mesh(x=4, y=2)), 448 * point),
        (Case("16 to 4 x 4", squared, [draw(16)], [batch, across_reshapes]), 0),
        (Case("8 x 2048 to 2 x 4 x 2048", micro_batches, [draw(8, 2048)], [batch, across_reshapes], trackers.FOUR), 0),
        (
            Case("heads, 64 x 128 x 16 to 64 x 2048", merged, [draw(64, 128, 16)], [along("x", 2)]),
            7 * 64 * 128 * 2 * point // 8,
        ),
        (Case("convolution, 3 x 3", conv, [image, kernel], [rows]), 2 * row),
        (Case("convolution, 3 x 3, stride 2", halved, [image, kernel], [rows]), row),
        (Case("two convolutions, widened", stacked, [image, kernel], [pt.Widen(["h"]), rows]), 4 * row),
        (Case("stencil, 8 steps, widened", stencil, [line], [wide, points]), 16 * point),
        (Case("convolution in groups, on the batch", grouped, [draw(16, 8, 8, 4), draw(3, 3, 2, 8)], [batch]), 0),
        (Case("roll by 1", rolled, [line], [points]), point),
        (
            Case("rows, 17 over 8, summed", summed, [draw(24, 4)], [pt.Tile({"x": 0}, "data", padded=True)]),
            2 * 4 * point * 7 // 8,
        ),
        (Case("cumsum", running, [line], [batch]), 7 * point),
        (Case("sort", ordered, [line], [batch]), 6 * 64 * point),
    ]


def cases() -> list[tuple[Case, int]]:
    return [*laws(), *trackers.cases()]


def row(case: Case, theory: int) -> list[Cell]:
    name, ours, theirs, bytes_ours, bytes_theirs = case.row()
    return [name, str(case.mesh), ours, theirs, theory, bytes_ours, bytes_theirs, *case.largest()]


def tables() -> list[Table]:
    jax.config.update("jax_num_cpu_devices", DEVICES)
    return [
        Table(
            "ranges",
            "Redistributions, windows, folds and reshapes, on host devices",
            COLUMNS,
            [row(case, theory) for case, theory in cases()],
            [
                "Measured by `python -m benchmarks.ranges`.",
                "`jit`: jax.jit with the same input and output shardings, Auto axes.",
                "Its collectives are those of the program that XLA compiles.",
                "Bytes are those that one device receives in a call.",
                "Theory: the rim of a window, the totals of a fold or scan, or what the device lacks that lacks most.",
                "Theory of a sort: the blocks of a bitonic network.",
                "The largest array that a device holds, in bytes: of the results of all instructions that XLA compiles.",
            ],
        )
    ]


if __name__ == "__main__":
    for table in tables():
        table.show()
        table.write()
