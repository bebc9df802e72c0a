"""Small programs that read a dim through windows: convolutions, pools, slices, pads, concatenations, rolls, reshapes in a row.

Each step is drawn for the extent that the one before leaves, so every program is valid and no dim is empty.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax
from numpy.typing import NDArray

import partita as pt

CHANNELS = 2
FOLDS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (lax.add, 0.0),
    "max": (lax.max, -float("inf")),
    "min": (lax.min, float("inf")),
}

Array: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Window:
    """A window over rows: so many taps, each `dilation` rows after the one before; rows are dilated by `base`."""

    width: int
    stride: int = 1
    dilation: int = 1
    base: int = 1
    pads: tuple[int, int] = (0, 0)

    def extent(self, rows: int) -> int:
        """How many windows there are; none or less if the rows are too few."""
        spread = (rows - 1) * self.base + 1 + sum(self.pads)
        return (spread - (self.width - 1) * self.dilation - 1) // self.stride + 1


@dataclass(frozen=True)
class Conv:
    """A convolution of the rows, with a kernel of its own; `groups` of channels, or of the batch."""

    window: Window
    groups: int = 1

    def extent(self, rows: int) -> int:
        return self.window.extent(rows)

    def __call__(self, x: Any) -> Any:
        w, inputs = self.window, CHANNELS // self.groups
        kernel = jnp.arange(1.0, w.width * inputs * CHANNELS + 1, dtype=x.dtype).reshape(w.width, inputs, CHANNELS) / 8
        out = lax.conv_general_dilated(
            x[None],
            kernel,
            (w.stride,),
            [w.pads],
            lhs_dilation=(w.base,),
            rhs_dilation=(w.dilation,),
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=self.groups,
        )
        return out[0]


@dataclass(frozen=True)
class Pool:
    """A fold of each window."""

    fold: str
    window: Window

    def extent(self, rows: int) -> int:
        return self.window.extent(rows)

    def __call__(self, x: Any) -> Any:
        w, (function, unit) = self.window, FOLDS[self.fold]
        return lax.reduce_window(
            x,
            np.asarray(unit, x.dtype),
            function,
            (w.width, 1),
            (w.stride, 1),
            (w.pads, (0, 0)),
            base_dilation=(w.base, 1),
            window_dilation=(w.dilation, 1),
        )


@dataclass(frozen=True)
class Slice:
    """Every `stride`-th of the rows `[begin, end)`."""

    begin: int
    end: int
    stride: int

    def extent(self, rows: int) -> int:
        return -(-(self.end - self.begin) // self.stride)

    def __call__(self, x: Any) -> Any:
        return lax.slice_in_dim(x, self.begin, self.end, self.stride)


@dataclass(frozen=True)
class Pad:
    """Rows of 0.5 around and between; a negative number takes rows away."""

    before: int
    after: int
    between: int

    def extent(self, rows: int) -> int:
        return rows + max(0, rows - 1) * self.between + self.before + self.after

    def __call__(self, x: Any) -> Any:
        return lax.pad(x, np.asarray(0.5, x.dtype), [(self.before, self.after, self.between), (0, 0, 0)])


@dataclass(frozen=True)
class Join:
    """Pieces of the rows, in this order."""

    pieces: tuple[tuple[int, int], ...]

    def extent(self, rows: int) -> int:
        return sum(end - begin for begin, end in self.pieces)

    def __call__(self, x: Any) -> Any:
        return jnp.concatenate([x[begin:end] for begin, end in self.pieces])


@dataclass(frozen=True)
class Roll:
    by: int

    def extent(self, rows: int) -> int:
        return rows

    def __call__(self, x: Any) -> Any:
        return jnp.roll(x, self.by, 0)


@dataclass(frozen=True)
class Difference:
    """Each row minus the one that is `apart` rows before."""

    apart: int

    def extent(self, rows: int) -> int:
        return rows - self.apart

    def __call__(self, x: Any) -> Any:
        return x[self.apart :] - x[: -self.apart]


@dataclass(frozen=True)
class Repeat:
    """Each row several times: two dims become one."""

    times: int

    def extent(self, rows: int) -> int:
        return rows * self.times

    def __call__(self, x: Any) -> Any:
        return jnp.repeat(x, self.times, 0)


@dataclass(frozen=True)
class Group:
    """The greatest of so many rows in a row: one dim becomes two."""

    rows: int

    def extent(self, rows: int) -> int:
        return rows // self.rows

    def __call__(self, x: Any) -> Any:
        return x.reshape(-1, self.rows, CHANNELS).max(1)


Step: TypeAlias = Conv | Pool | Slice | Pad | Join | Roll | Difference | Repeat | Group


@dataclass(frozen=True)
class Program:
    """Steps on an array of so many rows. The value before each step but the first is tagged `h1`, `h2`, ..."""

    rows: int
    steps: tuple[Step, ...]

    def __call__(self, x: Any) -> Any:
        for number, step in enumerate(self.steps):
            x = step(pt.tag(jnp.sin(x), f"h{number}") if number else x)
        return x

    @property
    def tags(self) -> list[str]:
        return [f"h{number}" for number in range(1, len(self.steps))]

    @property
    def has_gradient(self) -> bool:
        """Whether JAX has one: it has none of a fold of dilated windows, unless it is a sum."""
        pools = [step for step in self.steps if isinstance(step, Pool)]
        return all(pool.window.base == 1 and (pool.fold == "add" or pool.window.dilation == 1) for pool in pools)

    def arg(self) -> Array:
        shape = (self.rows, CHANNELS)
        return (np.random.default_rng(self.rows).normal(size=shape) + 0.1).astype(np.float32)


@st.composite
def windows(draw: st.DrawFn, rows: int, negative: bool) -> Window:
    """Windows that fit at least once."""
    least = -min(2, rows - 1) if negative else 0
    made = st.builds(
        Window,
        st.integers(1, 5),
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(1, 3),
        st.tuples(st.integers(least, 4), st.integers(least, 4)),
    )
    return draw(made.filter(lambda w: w.extent(rows) > 0 and (rows - 1) * w.base + 1 + min(0, *w.pads, sum(w.pads)) > 0))


@st.composite
def steps(draw: st.DrawFn, rows: int) -> Step:
    kind = draw(st.sampled_from(["conv", "pool", "slice", "pad", "join", "roll", "difference", "repeat", "group"]))
    match kind:
        case "conv":
            return Conv(draw(windows(rows, True)), draw(st.sampled_from([1, CHANNELS])))
        case "pool":
            return Pool(draw(st.sampled_from(sorted(FOLDS))), draw(windows(rows, False)))
        case "slice":
            return Slice(*draw(cuts(rows)), draw(st.integers(1, 3)))
        case "pad":
            pads = st.builds(Pad, st.integers(-3, 4), st.integers(-3, 4), st.integers(0, 2))
            return draw(pads.filter(lambda pad: pad.extent(rows) > 0))
        case "join":
            return Join(tuple(draw(st.lists(cuts(rows), min_size=1, max_size=3))))
        case "difference" if rows > 1:
            return Difference(draw(st.integers(1, min(3, rows - 1))))
        case "repeat":
            return Repeat(draw(st.integers(1, 3)))
        case "group":
            return Group(draw(st.sampled_from([size for size in range(1, 5) if rows % size == 0])))
        case _:
            return Roll(draw(st.integers(-rows, rows)))


@st.composite
def cuts(draw: st.DrawFn, rows: int) -> tuple[int, int]:
    begin = draw(st.integers(0, rows - 1))
    return begin, draw(st.integers(begin + 1, rows))


@st.composite
def programs(draw: st.DrawFn, most: int = 4) -> Program:
    rows = left = draw(st.integers(2, 24))
    found: list[Step] = []
    for _ in range(draw(st.integers(1, most))):
        found.append(draw(steps(left).filter(lambda step: step.extent(left) <= 60)))  # noqa: B023
        left = found[-1].extent(left)
    return Program(rows, tuple(found))
