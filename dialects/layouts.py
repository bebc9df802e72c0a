"""Layouts: where the elements of a value are, as one factored range per dimension, and its pending reductions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .ground import dtypes
from .ground.errors import Error
from .ground.interned import Interned, intern
from .ground.monoids import MONOID_NAMES, MONOIDS
from .mesh import Mesh
from .ranges.algebra import (
    Axis,
    Extent,
    Loop,
    Place,
    Product,
    Range,
    Sub,
    SubAxis,
    local,
    major_to_minor,
    placed,
    size,
    twice,
)
from .ranges.factor import Factor, joined, natural, split_factor, tiling, windows_over
from .ranges.text import PendingText, parse_array_text


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
    axis: Place
    dim: int
    backwards: bool

    def __new__(cls, monoid: str, axis: Place, dim: int = -1, backwards: bool = False) -> Pending:
        return intern(cls, monoid, axis, dim, backwards)

    @property
    def scans(self) -> bool:
        """Whether this is a pending scan, not a pending reduction."""
        return self.dim >= 0

    @property
    def is_gathered(self) -> bool:
        """Whether no collective folds it: devices gather the parts of all others, and fold them."""
        return not self.scans and bool(MONOIDS[self.monoid].gathered)

    def check(self) -> None:
        if self.monoid not in MONOID_NAMES:
            raise Error(
                f"`{self.monoid}` is not a monoid", helps=["a reduction is pending with one of " + ", ".join(MONOID_NAMES)]
            )

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
        clash = twice((*self.dims, *(p.axis for p in self.pending if not p.scans)))
        if clash is not None:
            raise Error(f"`{clash}` is used twice in `{self}`", helps=["an axis is used at most once in a layout"])
        if len({axis.axis.devices for axis in self.named if not isinstance(axis, Loop)}) > 1:
            raise Error(f"`{self}` has axes of several device sets", helps=["a value is on one device set: transfer it"])

    @staticmethod
    def of(shape: Iterable[int], factors: Iterable[tuple[int, Factor]] = (), pending: Iterable[Pending] = ()) -> Layout:
        """The layout of an array of this (global) shape with these factors of its dims; `Error` if they do not divide it.

        A factor of size 1 is the unit, so it is not placed.

        ```
        (512, 256), [(0, data*128)]             -->  [data*128, 256]
        (12,), [(0, model*6), (0, data*1)]      -->  [model*2*data]
        ```
        """
        return _of(tuple(shape), tuple(factors), tuple(pending))

    @property
    def factors(self) -> tuple[tuple[int, Factor], ...]:
        """What `of` was given: every placed factor with its dim, dim by dim, major to minor.

        Raises `Error` for a dim that is not a tiling: a sum, sub-range, pad or window of placed factors.
        """
        return _factors(self)

    def verify(self) -> None:
        """Raises `Error` for a layout that arrays cannot have, with the layout that comes near.

        Each dim is a product of axes and of numbers, perhaps padded, or windows of which some hold an element.
        """
        _verify(self)

    def at(self, dim: int) -> list[Factor]:
        """The placed factors of one dim, major to minor."""
        return [factor for on, factor in _factors(self) if on == dim]

    def windows(self, dim: int) -> Factor | None:
        """The windows of one dim as one factor, which may be on several places; None if the dim has blocks."""
        return windows_over(self.dims[dim])

    def with_pending(self, pending: tuple[Pending, ...]) -> Layout:
        """Returns a layout with the same dims and these pending reductions."""
        return self if pending == self.pending else Layout(self.dims, pending)

    @property
    def natural(self) -> Layout:
        """The same axes on the same dims, in blocks of consecutive elements: `2*data*64 --> data*128`.

        Windows become blocks. Loops are left out: all trips of a device share its memory. Axes on dims that they do not divide
        are left out too, because no `NamedSharding` has such blocks.
        """
        return _natural(self)

    def joined(self, axes: Container[Place]) -> Layout:
        """The same layout with these axes in place of all of their sub-axes, where these lie together in one dim.

        ```
        [data.0:2*data.1:4*2, 8]   -->   [data*2, 8]
        ```
        """
        return _joined(self, frozenset(axis.axis for axis in self.axes if axis.axis in axes and axis is not axis.axis))

    def split(self, parts: Iterable[Place]) -> Layout:
        """The same layout with all sub-axes of an axis in its place, if any of them is among `parts`. The inverse of `joined`.

        ```
        [data*2, 8], data.0:2   -->   [data.0:2*data.1:4*2, 8]
        ```
        """
        split = {part.axis: part.split for part in parts if isinstance(part, SubAxis)}
        if not any(axis in split for axis in self.named):
            return self
        found = ((dim, each) for dim, factor in self.factors for each in _parts_of(factor, split))
        pending = (
            Pending(each.monoid, axis, each.dim, each.backwards)
            for each in self.pending
            for axis in _sub_axes(each.axis, split)
        )
        return Layout.of(self.global_shape, found, pending)

    def covers(self, other: Layout) -> bool:
        """Whether each block of a value in the other layout lies in one of this one. Blocks are consecutive elements in both.

        ```
        [left*16, 8]   covers   [right*4, right.0:2*4]
        ```
        """
        blocks = zip(self.local_shape, other.local_shape, strict=True)
        return all(have == want or (want and have % want == 0) for have, want in blocks)

    def inner(self, dim: int, stride: int) -> int:
        """The number of local elements along `dim` that lie within one step of `stride`.

        With `a` (4 devices) at stride 16 and `b` (2) at stride 4, 16 elements below `a` are 8 local ones.
        """
        return stride // math.prod(factor.size for factor in self.at(dim) if factor.stride < stride)

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of the local array of one device in one iteration: `[data*128, 256] --> (128, 256)`."""
        return _local_shape(self)

    @property
    def global_shape(self) -> tuple[int, ...]:
        """The shape of the value: `[data*128, 256], data=4 --> (512, 256)`."""
        return _global_shape(self)

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """The global shape, with padding included: `[data*4 pad 30, 16], data=8 --> (32, 16)`."""
        return _padded_shape(self)

    @property
    def is_padded(self) -> bool:
        """Whether devices hold padding."""
        return self.padded_shape != self.global_shape

    @property
    def axes(self) -> tuple[Place, ...]:
        """The mesh axes that the dims are placed on, dim by dim. Axes of pending reductions are not included."""
        return _axes(self)

    @property
    def named(self) -> tuple[Place, ...]:
        """The mesh axes of the dims, then those of pending reductions."""
        return *self.axes, *(each.axis for each in self.pending)

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.dims)

    def text(self, dtype: str) -> str:
        """The array type, as in the IR, errors and reports: `f32[data*128, 256]{+model}`."""
        return dtypes.short(dtype) + str(self)

    def __str__(self) -> str:
        return _text(self)


@lru_cache(maxsize=1 << 14)
def _text(layout: Layout) -> str:
    pending = f"{{{', '.join(map(str, layout.pending))}}}" if layout.pending else ""
    return f"[{', '.join(map(str, layout.dims))}]{pending}"


@lru_cache(maxsize=1 << 14)
def parse_array(text: str, *meshes: Mesh) -> tuple[str, Layout]:
    """Parses an array type into dtype (a NumPy name) and layout: `parse_array(layout.text(dtype), mesh) == (dtype, layout)`."""
    brief, dims, pending = parse_array_text(text, *meshes)
    return dtypes.long(brief), Layout(dims, tuple(map(_pending, pending)))


def _pending(text: PendingText) -> Pending:
    match text:
        case (monoid, axis, dim, backwards):
            return Pending(monoid, axis, dim, backwards)
        case (monoid, axis):
            return Pending(monoid, axis)


def _ordered(pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """Sorts pending reductions by axis within each run of one monoid, because these commute."""
    runs = itertools.groupby(pending, key=lambda p: p.monoid)
    return tuple(p for _, run in runs for p in sorted(run, key=lambda p: (p.axis, p.dim)))


@lru_cache(maxsize=1 << 16)
def _of(shape: tuple[int, ...], factors: tuple[tuple[int, Factor], ...], pending: tuple[Pending, ...]) -> Layout:
    by_dim: dict[int, list[Factor]] = {}
    for dim, factor in factors:
        if factor.size > 1:
            if not 0 <= dim < len(shape):
                raise Error(f"`{factor.place}` cannot be placed on dim {dim} of a value of rank {len(shape)}")
            by_dim.setdefault(dim, []).append(factor)
    return Layout(tuple(tiling(n, by_dim[i]) if i in by_dim else Extent(n) for i, n in enumerate(shape)), pending)


@lru_cache(maxsize=1 << 16)
def _factors(layout: Layout) -> tuple[tuple[int, Factor], ...]:
    found: list[tuple[int, Factor]] = []
    for i, dim in enumerate(layout.dims):
        if (reaching := windows_over(dim)) is not None:
            found += [(i, part) for part in reaching.parts]
            continue
        whole = dim.base if isinstance(dim, Sub) and dim.is_padded else dim
        parts = whole.factors if isinstance(whole, Product) else (whole,)
        stride = math.prod(size(part) for part in parts)
        for part in parts:
            count = size(part)
            stride //= max(1, count)
            if isinstance(part, Place):
                found.append((i, Factor(part, stride)))
            elif placed(part):
                raise Error(f"dim {i} of `{layout}` is not a tiling", label=f"`{part}` is not a factor of it")
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def _verify(layout: Layout) -> None:
    shape = layout.global_shape
    for dim in range(layout.rank):
        one = windows_over(layout.dims[dim])
        if one is not None and not any(one.window(each, shape[dim]) for each in range(one.size)):
            first, last = one.start(0), one.start(one.size - 1)
            reads = f"they begin at {first}, ..., {last} and have {one.width} elements each"
            helps = [f"a window that begins `lo` elements before its block: `win<{one.stride},{one.width},1,lo>`"]
            raise Error(f"the windows of dim {dim} have none of its {shape[dim]} elements: {reads}", helps=helps)
    if (same := Layout.of(shape, layout.factors, layout.pending)) != layout:
        raise Error(f"`{layout}` is not a tiling, nor windows", helps=[f"write `{same}`"])


@lru_cache(maxsize=1 << 16)
def _natural(layout: Layout) -> Layout:
    shape = layout.global_shape
    if any(isinstance(factor.place, Loop) for _, factor in layout.factors):
        layout = Layout.of(
            shape, ((dim, each) for dim, each in layout.factors if not isinstance(each.place, Loop)), layout.pending
        )
    even = [dim for dim, extent in enumerate(shape) if extent == layout.padded_shape[dim]]
    windows = {dim: one for dim in even if (one := windows_over(layout.dims[dim])) is not None}
    blocks = [dim for dim in even if dim not in windows or shape[dim] % windows[dim].size == 0]
    moved = ((dim, factor) for dim in blocks for factor in natural(shape[dim], layout.at(dim)))
    return Layout.of(shape, moved, layout.pending)


@lru_cache(maxsize=1 << 16)
def _joined(layout: Layout, split: frozenset[Axis]) -> Layout:
    found, shape = list[tuple[int, Factor]](), layout.global_shape
    for (dim, axis), of in itertools.groupby(layout.factors, key=lambda each: (each[0], each[1].axis.axis)):
        parts = [factor for _, factor in of]
        one = joined(shape[dim], parts) if axis in split else None
        if one is not None and one.size == axis.size and one.axes == major_to_minor(one.axes):
            parts = [Factor(axis, one.stride, one.halo)]
        found += [(dim, each) for each in parts]
    return Layout.of(shape, found, layout.pending)


def _sub_axes(place: Place, split: Mapping[Axis, tuple[int, ...]]) -> Sequence[Place]:
    """The place itself or, if it is a split axis, its sub-axes, major to minor."""
    if not isinstance(place, Axis) or place not in split:
        return (place,)
    return [SubAxis(place, split[place], at) for at in range(len(split[place]))]


def _parts_of(factor: Factor, split: Mapping[Axis, tuple[int, ...]]) -> Sequence[Factor]:
    return split_factor(_sub_axes(factor.axis, split), factor)


@lru_cache(maxsize=1 << 16)
def _local_shape(layout: Layout) -> tuple[int, ...]:
    return tuple(local(dim) for dim in layout.dims)


@lru_cache(maxsize=1 << 16)
def _axes(layout: Layout) -> tuple[Place, ...]:
    return tuple(axis for dim in layout.dims for axis in placed(dim))


@lru_cache(maxsize=1 << 16)
def _padded_shape(layout: Layout) -> tuple[int, ...]:
    return tuple(size(dim.base if isinstance(dim, Sub) and dim.is_padded else dim) for dim in layout.dims)


@lru_cache(maxsize=1 << 16)
def _global_shape(layout: Layout) -> tuple[int, ...]:
    return tuple(size(dim) for dim in layout.dims)
