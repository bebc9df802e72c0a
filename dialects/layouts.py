"""Layouts: where the elements of a value are, as one factored range per dimension, and its pending reductions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from . import dtypes
from .errors import Error
from .interned import Interned, intern
from .mesh import Mesh
from .monoids import MONOIDS, NAMES
from .ranges.algebra import (
    Axis,
    Extent,
    Placed,
    Product,
    Range,
    SubAxis,
    axes,
    chain_ok,
    local,
    placed,
    product,
    size,
    twice,
)
from .ranges.text import PendingText, parse_array_text, parse_range

Tile: TypeAlias = tuple[str, int, int]
"""(axis, dim, stride): the axis is placed on the dim, and its next coordinate is `stride` global elements further.

A sub-axis or a loop is named by its text: `data.0:2`, `t:8`.
"""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Pending(Interned):
    """A pending reduction: each device along `axis` holds one operand of `monoid`, and no device holds the result.

    ```
    f32[64, 8]{+model}: two devices along model; the value is the sum of their local arrays
    ```

    With a `dim` it is a pending scan along that dim: the dim is placed on the axis, and each device holds the scan of its own
    block, without the blocks before it (`backwards`: after it) on other devices.

    ```
    f32[data*64, 8]{+data before 0}: running sums of 64 rows each, to which the sums of the rows before them are to be added
    ```
    """

    monoid: str
    axis: str
    dim: int
    backwards: bool

    def __new__(cls, monoid: str, axis: str, dim: int = -1, backwards: bool = False) -> Pending:
        return intern(cls, monoid, axis, dim, backwards)

    @property
    def scans(self) -> bool:
        """Whether it is a scan, and not a reduction."""
        return self.dim >= 0

    @property
    def is_gathered(self) -> bool:
        """Whether no collective folds it: devices gather the parts of all others, and fold them."""
        return not self.scans and bool(MONOIDS[self.monoid].gathered)

    def check(self) -> None:
        if self.monoid not in NAMES:
            raise Error(f"`{self.monoid}` is not a monoid", helps=["a reduction is pending with one of " + ", ".join(NAMES)])
        if not isinstance(_factor(self.axis), Axis | SubAxis):
            raise Error(f"a reduction cannot be pending over `{self.axis}`", helps=["name a mesh axis"])

    def __str__(self) -> str:
        sign = MONOIDS[self.monoid].sign
        folded = f"{sign}{self.axis}" if sign else f"{self.monoid} {self.axis}"
        return f"{folded} {'behind' if self.backwards else 'before'} {self.dim}" if self.scans else folded


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Layout(Interned):
    """The placement of a value: `[data*128, 256]{+model}`.

    A dim's placed factors say which block a device holds. Along an axis that no dim names, the value is replicated, unless a
    reduction over it is pending. Each axis is used at most once (`Error`). Equal layouts are one object. Neighbouring
    reductions with the same monoid commute and are kept sorted; others do not commute, and the first is the outermost.
    """

    dims: tuple[Range, ...]
    pending: tuple[Pending, ...]

    def __new__(cls, dims: tuple[Range, ...], pending: tuple[Pending, ...] = ()) -> Layout:
        return intern(cls, dims, _ordered(pending) if len(pending) > 1 else pending)

    def check(self) -> None:
        clash = twice((*self.dims, *(_factor(p.axis) for p in self.pending if not p.scans)))
        if clash is not None:
            raise Error(f"`{clash}` is used twice in `{self}`", helps=["an axis is used at most once in a layout"])

    @staticmethod
    def of(shape: Iterable[int], tiles: Iterable[Tile], mesh: Mesh, pending: Iterable[Pending] = ()) -> Layout:
        """The layout of an array of this (global) shape with these tiles; `Error` if they do not divide it.

        An axis of size 1 is the unit, so it is not placed.

        ```
        (512, 256), [("data", 0, 128)], data=4            -->  [data*128, 256]
        (12,), [("model", 0, 6), ("data", 0, 1)], 2 and 3  -->  [model*2*data]
        ```
        """
        return _of(tuple(shape), tuple(tiles), mesh, tuple(pending))

    def tiles(self, mesh: Mesh) -> tuple[Tile, ...]:
        """What `of` was given: every placed factor with its dim and stride, dim by dim, major to minor.

        Raises `Error` for a dim that is not a tiling: a sum, sub-range, pad or window of placed factors.
        """
        return _tiles(self, mesh)

    def local_shape(self, mesh: Mesh) -> tuple[int, ...]:
        """The shape of the local array of one device in one iteration: `[data*128, 256] --> (128, 256)`."""
        return _local_shape(self, mesh)

    def global_shape(self, mesh: Mesh) -> tuple[int, ...]:
        """The shape of the value: `[data*128, 256], data=4 --> (512, 256)`."""
        return _global_shape(self, mesh)

    def axes(self) -> tuple[str, ...]:
        """The mesh axes that the dims are placed on, dim by dim; those of pending reductions are not among them."""
        return tuple(name for dim in self.dims for name in axes(dim))

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.dims)

    def text(self, dtype: str) -> str:
        """The array type, as in the IR, errors and reports: `f32[data*128, 256]{+model}`."""
        return dtypes.short(dtype) + str(self)

    def __str__(self) -> str:
        pending = f"{{{', '.join(map(str, self.pending))}}}" if self.pending else ""
        return f"[{', '.join(map(str, self.dims))}]{pending}"


@lru_cache(maxsize=1 << 14)
def parse_array(text: str) -> tuple[str, Layout]:
    """The dtype (a NumPy name) and layout of an array type: `parse_array(layout.text(dtype)) == (dtype, layout)`."""
    brief, dims, pending = parse_array_text(text)
    return dtypes.long(brief), Layout(dims, tuple(map(_pending, pending)))


def _pending(text: PendingText) -> Pending:
    match text:
        case (monoid, axis, dim, backwards):
            return Pending(monoid, axis, dim, backwards)
        case (monoid, axis):
            return Pending(monoid, axis)


def _ordered(pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """Sorted by axis within each run of one monoid, where the order has no meaning."""
    runs = itertools.groupby(pending, key=lambda p: p.monoid)
    return tuple(p for _, run in runs for p in sorted(run, key=lambda p: (p.axis, p.dim)))


@lru_cache(maxsize=1 << 12)
def _factor(text: str) -> Placed:
    """The placed factor that a tile's or a reduction's axis names: `data`, `data.0:2`, `t:8`."""
    r = parse_range(text)
    if placed(r) != (r,):
        raise Error(f"`{text}` is not a mesh axis, sub-axis or loop")
    return placed(r)[0]


@lru_cache(maxsize=1 << 16)
def _of(shape: tuple[int, ...], tiles: tuple[Tile, ...], mesh: Mesh, pending: tuple[Pending, ...]) -> Layout:
    by_dim: dict[int, list[tuple[int, int, Placed]]] = {}
    for axis, dim, stride in tiles:
        count = _size(axis, mesh)
        if count > 1:
            if not 0 <= dim < len(shape):
                raise Error(f"`{axis}` cannot be placed on dim {dim} of a value of rank {len(shape)}")
            by_dim.setdefault(dim, []).append((stride, count, _factor(axis)))
    dims = tuple(_dim(i, n, by_dim[i]) if i in by_dim else Extent(n) for i, n in enumerate(shape))
    return Layout(dims, tuple(p for p in pending if _size(p.axis, mesh) > 1))


def _size(axis: str, mesh: Mesh) -> int:
    """The size of a tile's or a reduction's axis. Raises `Error` if the mesh has no such axis or sub-axis."""
    factor = _factor(axis)
    if isinstance(factor, SubAxis) and mesh[factor.name] % factor.size:
        raise Error(f"`{factor}` is not a sub-axis of `{factor.name}`", label=f"{mesh[factor.name]} devices do not divide")
    return size(factor, mesh)


def _dim(dim: int, extent: int, tiles: list[tuple[int, int, Placed]]) -> Range:
    """`N/(s1·p1) * axis1 * s1/(s2·p2) * axis2 * ... * s_last`, or why the tiles do not divide the extent."""
    tiles = sorted(tiles, key=lambda tile: tile[:2], reverse=True)
    if not chain_ok(extent, [(stride, count) for stride, count, _ in tiles]):
        names = ", ".join(f"`{factor}` (size {count}, stride {stride})" for stride, count, factor in tiles)
        raise Error(f"dim {dim} of extent {extent} does not divide over {names}")
    parts: list[Range | int] = []
    outer = extent
    for stride, count, factor in tiles:
        parts += [outer // (stride * count), factor]
        outer = stride
    return product(*parts, outer)


@lru_cache(maxsize=1 << 16)
def _tiles(layout: Layout, mesh: Mesh) -> tuple[Tile, ...]:
    found: list[Tile] = []
    for i, dim in enumerate(layout.dims):
        parts = dim.factors if isinstance(dim, Product) else (dim,)
        stride = math.prod(size(part, mesh) for part in parts)
        for part in parts:
            stride //= max(1, size(part, mesh))
            if placed(part) == (part,):
                found.append((str(part), i, stride))
            elif placed(part):
                raise Error(f"dim {i} of `{layout}` is not a tiling", label=f"`{part}` is not a factor of it")
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def _local_shape(layout: Layout, mesh: Mesh) -> tuple[int, ...]:
    return tuple(local(dim, mesh) for dim in layout.dims)


@lru_cache(maxsize=1 << 16)
def _global_shape(layout: Layout, mesh: Mesh) -> tuple[int, ...]:
    return tuple(size(dim, mesh) for dim in layout.dims)
