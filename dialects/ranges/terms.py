"""The terms of the range algebra, each with the text that it prints as.

These classes say what a range *is*. Make ranges with the functions of `laws` (`product`, `sum_`, ...), which put
them into normal form; the classes themselves are for matching.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TypeAlias

from ..ground.amounts import counted
from ..ground.errors import Error
from ..ground.interned import Interned, intern

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Range(Interned):
    """A finite, ordered index set. Its size says how many iterations there are, its placed factors where each one runs."""

    __slots__ = ()


class BasePlace(Range):
    """Base of the ranges that are places, which are sorted by their texts."""

    __slots__ = ()
    size: int

    @property
    def amount(self) -> str:
        """How many iterations there are, in text: `4 devices`."""
        return counted(self.size, "device")

    @property
    def on_devices(self) -> str:
        """The name of the axis of JAX's mesh, whose devices are one set: `data` for `data@left`."""
        return str(self)

    def __lt__(self, other: Place) -> bool:
        return str(self) < str(other)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Extent(Range):
    """The range `0 .. n-1` on one device, whose compiler decides how to run it: `128`."""

    n: int

    def __new__(cls, n: int) -> Extent:
        # A plus sign makes a number of a truth.
        return intern(cls, +n)

    def check(self) -> None:
        if self.n < 0:
            raise Error(f"an extent cannot be negative: {self.n}")
        if self.n >= 2**63:
            raise Error("an extent cannot be 2**63 or more")

    def __str__(self) -> str:
        return str(self.n)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Devices(Interned):
    """A device set: devices in a grid whose axes have names and sizes, major to minor. It is virtual: it says how many
    devices there are, and not which. A program on one device set need not name it.
    """

    axes: tuple[tuple[str, int], ...]
    name: str
    apart: tuple[str, ...]
    """The axes along which the devices are several sets, so that no value of one set lies or goes along them."""

    def __new__(cls, axes: tuple[tuple[str, int], ...], name: str = "", apart: tuple[str, ...] = ()) -> Devices:
        return intern(cls, axes, name, apart)

    def check(self) -> None:
        for name in (*dict(self.axes), *([self.name] if self.name else [])):
            _check_name(name)

    def __repr__(self) -> str:
        return f"Devices({', '.join(f'{name}={size}' for name, size in self.axes)})"

    @property
    def places(self) -> tuple[Axis, ...]:
        """The axes of one set, major to minor."""
        return tuple(Axis(name, size, self) for name, size in self.axes if name not in self.apart)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Axis(BasePlace):
    """A mesh axis, one iteration for each of the `size` devices along it: `data`.

    It belongs to a device set; two axes of one name are told apart by the names of their sets.

    ```
    Axis("data", 4)                                      of a set that has no other axis
    Axis("data", 4, Devices((("data", 4),), "left"))     prints as `data@left`
    ```
    """

    name: str
    size: int
    devices: Devices
    stride: int = field(init=False)
    """The distance of neighbours along the axis, in the numbers that the set gives its devices."""

    def __new__(cls, name: str, size: int, devices: Devices | None = None) -> Axis:
        return intern(cls, name, size, devices or Devices(((name, size),)))

    def check(self) -> None:
        _check_name(self.name)
        if self.size < 1:
            raise Error(f"axis `{self}` has size {self.size}", helps=["the size is the number of devices along it"])
        names = [name for name, _ in self.devices.axes]
        if (self.name, self.size) not in self.devices.axes:
            raise Error(f"its device set has no axis `{self.name}` of size {self.size}", helps=[f"it has {names}"])
        object.__setattr__(self, "stride", prod(size for _, size in self.devices.axes[names.index(self.name) + 1 :]))

    @property
    def axis(self) -> Axis:
        """The axis itself. (The `axis` of a sub-axis is the axis that it is a part of.)"""
        return self

    @property
    def on_devices(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"{self.name}@{self.devices.name}" if self.devices.name else self.name


@dataclass(frozen=True, slots=True, eq=False, init=False)
class SubAxis(BasePlace):
    """Factor number `index` of a mesh axis that is split into sizes, major to minor: `data = data.0:2 * data.1:4`.

    This is how an extent of 16 is laid out as `4 x 4` on an axis of 8 devices.
    """

    axis: Axis
    split: tuple[int, ...]
    index: int
    size: int = field(init=False)
    stride: int = field(init=False)
    """The distance of neighbours along the sub-axis, in the numbers that the set gives its devices."""

    def __new__(cls, axis: Axis, split: Iterable[int], index: int) -> SubAxis:
        return intern(cls, axis, tuple(split), index)

    def check(self) -> None:
        text = f"{self.axis} = {' * '.join(map(str, self.split))}"
        if min(self.split, default=0) < 1 or prod(self.split) != self.axis.size or not 0 <= self.index < len(self.split):
            helps = [f"the product of the sizes is {self.axis.size}, and there are so many sub-axes"]
            raise Error(f"sub-axis {self.index} of `{text}` is none", helps=helps)
        object.__setattr__(self, "size", self.split[self.index])
        object.__setattr__(self, "stride", self.axis.stride * prod(self.split[self.index + 1 :]))

    @property
    def name(self) -> str:
        """The name of the axis that the sub-axis is a part of."""
        return self.axis.name

    @property
    def on_devices(self) -> str:
        return f"{self.name}.{self.index}:{self.size}"

    def __str__(self) -> str:
        return f"{self.axis}.{self.index}:{self.size}"


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Loop(BasePlace):
    """A named loop of `size` iterations, one after another on the same device: `t:8`.

    `stride` is how far apart two iterations are, where each iteration of each device has a number: as if the loop were an axis
    major to those of the mesh, and to the loops outside of it. A loop on no mesh has none.
    """

    name: str
    size: int
    stride: int

    def __new__(cls, name: str, size: int, stride: int = 0) -> Loop:
        return intern(cls, name, size, stride)

    def check(self) -> None:
        _check_name(self.name)
        if self.size < 1:
            raise Error(f"loop `{self.name}` has {self.size} iterations", helps=["a loop runs at least once"])

    @property
    def amount(self) -> str:
        """How many iterations there are, in text: `8 trips`."""
        return counted(self.size, "trip")

    @property
    def axis(self) -> Loop:
        """The loop itself, as the `axis` of an axis is the axis."""
        return self

    def __str__(self) -> str:
        return f"{self.name}:{self.size}"


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Product(Range):
    """Tiling: one index of each factor, major to minor; `(i, j)` of `r * s` is `i·|s| + j`: `data*128`."""

    factors: tuple[Range, ...]

    def __new__(cls, factors: tuple[Range, ...]) -> Product:
        return intern(cls, factors)

    def check(self) -> None:
        clash = twice(self.factors)
        if clash is not None:
            raise Error(f"`{clash}` is used twice in `{self}`", helps=["an axis is used at most once along any nest"])

    def __str__(self) -> str:
        return "*".join(f"({factor})" if _is_compound(factor) else str(factor) for factor in self.factors)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Sum(Range):
    """Concatenation: first all of the first term, then all of the next: `16 + 4`."""

    terms: tuple[Range, ...]

    def __new__(cls, terms: tuple[Range, ...]) -> Sum:
        return intern(cls, terms)

    def __str__(self) -> str:
        return " + ".join(f"({term})" if isinstance(term, Sub) and term.is_padded else str(term) for term in self.terms)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Sub(Range):
    """Part of a range: `length` of its indices from `offset` on, every `step`-th: `512[0 : 256 : 1]`.

    The first `length` indices of a placed range are `length` elements padded to it: `data*4 pad 30`, with 8 devices 30 of 32.
    """

    base: Range
    offset: int
    length: int
    step: int

    def __new__(cls, base: Range, offset: int, length: int, step: int = 1) -> Sub:
        return intern(cls, base, offset, length, step)

    def check(self) -> None:
        if self.offset < 0 or self.length < 0 or self.step < 1:
            helps = ["a sub-range is [offset : length : step], offset and length from 0, step from 1"]
            raise Error(f"`{self}` is not a sub-range", helps=helps)

    @property
    def is_padded(self) -> bool:
        """Whether the range is `length` elements, padded so that they divide over the places of the base."""
        return (
            self.offset == 0
            and self.step == 1
            and isinstance(self.base, Product | Axis | SubAxis | Loop)
            and bool(placed(self.base))
        )

    def __str__(self) -> str:
        if self.is_padded:
            return f"{self.base} pad {self.length}"
        base = f"({self.base})" if _is_compound(self.base) else str(self.base)
        return f"{base}[{self.offset} : {self.length} : {self.step}]"


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Pad(Range):
    """A range with `lo` undefined elements before it and `hi` after it: `pad(512, 0, 3)`."""

    base: Range
    lo: int
    hi: int

    def __new__(cls, base: Range, lo: int, hi: int) -> Pad:
        return intern(cls, base, lo, hi)

    def check(self) -> None:
        if self.lo < 0 or self.hi < 0:
            raise Error(
                f"`{self}` pads with a negative number of elements",
                helps=["remove elements with [offset : length : step]"],
            )

    def __str__(self) -> str:
        return f"pad({self.base}, {self.lo}, {self.hi})"


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Window(Range):
    """What a sliding window reads: the interval of inputs that the outputs `base` need: `win<2,3,1,1>(64)`.

    Output `o` reads inputs `o·stride - lo + t·dilation` for `t < kernel`; the outputs `[b, e)` read the interval
    `[b·stride - lo, (e-1)·stride + width - lo)`. Inputs before 0 are undefined (padding). Neighbouring blocks of
    outputs read overlapping intervals, and the overlap is the halo that they exchange. With a negative stride later outputs
    read earlier inputs.
    """

    base: Range
    stride: int
    kernel: int
    dilation: int
    lo: int

    def __new__(cls, base: Range, stride: int, kernel: int, dilation: int = 1, lo: int = 0) -> Window:
        return intern(cls, base, stride, kernel, dilation, lo)

    def check(self) -> None:
        if not self.stride or self.kernel < 1 or self.dilation < 1:
            raise Error(f"`{self}` is not a window", helps=["the stride is not 0; kernel and dilation are at least 1"])

    @property
    def width(self) -> int:
        """The number of inputs, from the first to the last, that one output reads."""
        return (self.kernel - 1) * self.dilation + 1

    def __str__(self) -> str:
        return f"win<{self.stride},{self.kernel},{self.dilation},{self.lo}>({self.base})"


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Of(Range):
    """The range `0 .. n-1`, where each iteration holds the positions that `base` gives it: `win<64,66,1,1>(data) of 512`.

    A position outside of the range has no element. Several iterations may hold an element, or none.
    """

    base: Range
    n: int

    def __new__(cls, base: Range, n: int) -> Of:
        return intern(cls, base, n)

    def __str__(self) -> str:
        return f"({self.base}) of {self.n}" if _is_compound(self.base) else f"{self.base} of {self.n}"


Place: TypeAlias = Axis | SubAxis | Loop
"""A place: a mesh axis or a part of one, in space, or a loop, in time."""


def coordinate(axis: Place, device: int) -> int:
    """The coordinate along an axis of the device with this number in the device set; along a loop, of this iteration."""
    return device // axis.stride % axis.size


def major_to_minor(axes: Iterable[Place]) -> tuple[Place, ...]:
    """Sorts places, each once: axes in the order in which their device set numbers devices, then loops, outer first."""
    return tuple(sorted(dict.fromkeys(axes), key=nesting))


def nesting(place: Place) -> tuple[bool, int, bool]:
    """The key by which places are sorted, outer first."""
    return (True, place.stride, False) if isinstance(place, Loop) else (False, -place.stride, place.size == 1)


def in_time(places: Iterable[Place]) -> tuple[Loop, ...]:
    """Those of some places that are loops."""
    return tuple(place for place in places if isinstance(place, Loop))


def all_axes(some: Iterable[Place]) -> tuple[Place, ...]:
    """All axes of the device set of these axes, in its order. An axis of which a part is named appears as all its parts."""
    named = {axis.axis: axis for axis in some if not isinstance(axis, Loop)}
    every = next(iter(named)).axis.devices.places if named else ()
    return tuple(part for axis in every for part in _parts(named.get(axis, axis)))


def _parts(axis: Axis | SubAxis) -> tuple[Axis | SubAxis, ...]:
    if isinstance(axis, Axis):
        return (axis,)
    return tuple(SubAxis(axis.axis, axis.split, index) for index in range(len(axis.split)))


@lru_cache(maxsize=1 << 16)
def placed(r: Range) -> tuple[Place, ...]:
    """The placed factors that a range uses, in the order in which it prints, each once."""
    match r:
        case Axis() | SubAxis() | Loop():
            return (r,)
        case Product(parts) | Sum(parts):
            return tuple(dict.fromkeys(factor for part in parts for factor in placed(part)))
        case Sub(base) | Pad(base) | Window(base) | Of(base):
            return placed(base)
        case _:
            return ()


def twice(ranges: Iterable[Range]) -> Place | None:
    """The first placed factor that overlaps an earlier one: the same axis or loop, or overlapping parts of one axis."""
    used = [factor for r in ranges if not isinstance(r, Extent) for factor in placed(r)]
    return next((each for number, each in enumerate(used) if any(meet(each, other) for other in used[:number])), None)


def meet(one: Place, other: Place) -> bool:
    """Whether two places overlap: the same axis or loop, or overlapping parts of one axis."""
    if isinstance(one, SubAxis) and isinstance(other, SubAxis) and one.axis is other.axis and one is not other:
        return one.stride < other.stride * other.size and other.stride < one.stride * one.size
    if isinstance(one, Loop) or isinstance(other, Loop):
        return one.name == other.name
    return one.name == other.name and one.axis.devices.name == other.axis.devices.name


def _is_compound(r: Range) -> bool:
    """Whether the text of a range needs brackets inside another text."""
    return isinstance(r, Product | Sum | Of) or (isinstance(r, Sub) and r.is_padded)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Error(f"`{name}` cannot name an axis or a loop", helps=["use a letter, then letters, digits and `_`"])
