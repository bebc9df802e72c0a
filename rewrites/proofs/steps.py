"""The steps of redistribution as laws: what a step emits takes the local arrays of one layout to those of another.

    n*m   -- slice over a -->   a*m          device a has, at index i, what the whole array has at a * m + i

A law is a function of numbers that it picks: sizes, coordinates, strides, and an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol, TypeAlias

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Axis, Devices, Extent, Place, Product, Range, Sub, local, placed, size
from ...dialects.ranges.factor import Factor
from ...dialects.ranges.windows import windows_of
from ..redistribute.kinds.all_gather import AllGather
from ..redistribute.kinds.all_to_all import AllToAll
from ..redistribute.kinds.folds import AllReduce, ReduceScatter
from ..redistribute.kinds.local import Cut, Pad, Slice
from ..redistribute.steps import Step
from .local_arrays import ANY, ZERO, Element, Folded, Here, Index, Local, as_functions, member, rank
from .symbols import Law, Nothing, Pick
from .values import Number


# What devices have.


def position(r: Range, here: Here, index: Number) -> tuple[str, Number]:
    """Which position of a range a device has at a local index, and whether it is `inside`, in `padding`, or `outside`."""
    if isinstance(r, Sub) and r.is_padded:
        _, at = position(r.base, here, index)
        return ("inside" if at < r.length else "padding"), at
    if (window := windows_of(r)) is not None:
        at = rank(placed(window.base), here) * window.stride - window.lo + index
        return ("inside" if 0 <= at and at < size(r) else "outside"), at
    at, minor = 0, 1
    for part in reversed(r.factors if isinstance(r, Product) else (r,)):
        if isinstance(part, Extent):
            index, digit = divmod(index, part.n) if minor is not None else (0, index)
        else:
            digit = here[part]
        at, minor = at + digit * minor, minor * size(part)
    return "inside", at


def element(layout: Layout, here: Here, index: Index) -> Element:
    """What a device has at a local index of an array: positions; zero outside of a range; anything in padding."""
    found = [position(r, here, i) for r, i in zip(layout.dims, index, strict=True)]
    kinds = {kind for kind, _ in found}
    return ZERO if "outside" in kinds else ANY if "padding" in kinds else tuple(at for _, at in found)


def held(layout: Layout) -> Local:
    return Local(layout.local_shape, lambda here, index: element(layout, here, index))


def same(pick: Pick, got: Element, wanted: Element) -> bool:
    if isinstance(wanted, Folded):
        number = pick("device", 0, wanted.count)
        return (
            isinstance(got, Folded)
            and got.monoid == wanted.monoid
            and got.count == wanted.count
            and same(pick, got.of(number), wanted.of(number))
        )
    if wanted is ANY:
        return True
    if isinstance(wanted, tuple):
        return isinstance(got, tuple) and all(x == y for x, y in zip(got, wanted, strict=True))
    return not isinstance(got, tuple | str) and got == wanted


def made(step: Step, x: Local) -> Any:
    """What the ops of a step make of a local array."""
    with as_functions():
        return step.ops(x)[-1]  # pyright: ignore[reportArgumentType]


# Layouts with any sizes. A text has the factors of each dim, major to minor: names of sizes, and of axes where these are placed.
# `p*a*m, q --> p*a'*m, q` has the axis a between p and m of the first dim; then a' is an extent, as long as the axis.

AXES = "abcde"


def dims(text: str) -> list[list[str]]:
    return [dim.strip().split("*") for dim in text.partition("{")[0].split(",")]


class Sized:
    """Picked sizes, and the layouts that texts describe with them."""

    def __init__(self, pick: Pick, *texts: str) -> None:
        names = dict.fromkeys(name for text in texts for name in text if name.isalpha())
        self.pick, self.sizes = pick, {name: pick.size(name) for name in names}
        axes = [(name, n) for name, n in self.sizes.items() if name in AXES]
        self.axes = {axis.name: axis for axis in Devices(tuple(axes)).places}
        self.here: Here = {axis: pick(f"at {name}", 0, axis.size) for name, axis in self.axes.items()}

    def factors(self, text: str) -> dict[str, tuple[int, Number]]:
        """The dim and the stride of each axis that is placed."""
        found = dict[str, tuple[int, Number]]()
        for dim, names in enumerate(dims(text)):
            stride: Number = 1
            for name in reversed(names):
                if name in self.axes:
                    found[name] = dim, stride
                stride = stride * self.sizes[name[0]]
        return found

    def layout(self, text: str) -> Layout:
        shape = [prod((self.sizes[name[0]] for name in names), start=1) for names in dims(text)]
        return Layout.of(shape, [(dim, Factor(self.axes[name], n)) for name, (dim, n) in self.factors(text).items()])

    def index(self, text: str) -> Index:
        """An index of the local arrays: a digit for each size that no axis takes."""
        found = list[Number]()
        for dim, names in enumerate(dims(text)):
            at: Number = 0
            for name in (name for name in names if name not in self.axes):
                n = self.sizes[name[0]]
                at = at * n + self.pick(f"{name} of {dim}", 0, n)
            found.append(at)
        return tuple(found)


def tiled(kind: type[Step], over: str, text: str) -> Law:
    """The law of a step over axes, major to minor, that lie side by side where a layout places them."""

    def law(pick: Pick) -> bool:
        before, after = (side.strip() for side in text.split("-->"))
        sized = Sized(pick, before, after)
        have, want = sized.layout(before), sized.layout(after)
        axes = tuple(sized.axes[name] for name in over)
        places = [sized.factors(side)[over[-1]] for side in (before, after) if over[-1] in sized.factors(side)]
        is_fold = "{" in before
        step = kind.of(*["add"][:is_fold], axes, *(number for place in places for number in place))
        step = replace(step, before=have, after=want)

        def part(here: Here, index: Index) -> Element:
            found = element(have, here, index)
            return (*(here[axis] for axis in axes), *found) if is_fold else found

        got, index = made(step, Local(have.local_shape, part)), sized.index(after)
        wanted = element(want, sized.here, index)
        if is_fold:
            others = lambda number: member(axes, sized.here, number)
            positions = wanted
            wanted = Folded("add", prod(axis.size for axis in axes), lambda n: (*(others(n)[axis] for axis in axes), *positions))
        return got.shape == want.local_shape and same(pick, got.at(sized.here, index), wanted)

    return law
