"""The steps of redistribution as laws: what a step emits takes the local arrays of one layout to those of another.

    n*m   -- slice over a -->   a*m          device a has, at index i, what the whole array has at a * m + i

A law is a function of numbers that it is given: sizes, coordinates, strides, and an index.
"""

# What ops do is said of numbers of any kind.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from ....dialects.layouts import Layout
from ....dialects.ranges.algebra import Devices, Place, Product, Range, Sub, SubAxis, placed, size
from ....dialects.ranges.factor import Factor
from ....dialects.ranges.windows import windows_of
from ...redistribute.steps import Step, devices
from ..symbolic.explore import Law
from ..symbolic.given import Given
from ..values import Number
from .local_arrays import ANY, ZERO, Element, Folded, Here, Index, Local, member, rank

# What devices have.


def position(r: Range, here: Here, index: Number) -> tuple[str, Number]:
    """Which position of a range a device has at a local index, and whether it is `inside`, in `padding`, or `outside`."""
    if isinstance(r, Sub) and r.is_padded:
        _, at = position(r.base, here, index)
        return ("inside" if at < r.length else "padding"), at
    if (window := windows_of(r)) is not None:
        at = rank(placed(window.base), here) * window.stride - window.lo + index
        return ("inside" if at >= 0 and at < size(r) else "outside"), at
    at, minor = 0, 1
    for part in reversed(r.factors if isinstance(r, Product) else (r,)):
        if isinstance(part, Place):
            digit = here[part]
        else:
            index, digit = divmod(index, size(part))
        at, minor = at + digit * minor, minor * size(part)
    return "inside", at


def element(layout: Layout, here: Here, index: Index) -> Element:
    """What a device has at a local index of an array: positions; zero outside of a range; anything in padding."""
    found = [position(r, here, i) for r, i in zip(layout.dims, index, strict=True)]
    kinds = {kind for kind, _ in found}
    return ZERO if "outside" in kinds else ANY if "padding" in kinds else tuple(at for _, at in found)


def held(layout: Layout) -> Local:
    return Local(layout.local_shape, lambda here, index: element(layout, here, index))


def same(given: Given, got: Element, wanted: Element) -> bool:
    if isinstance(wanted, Folded):
        number = given.index("device", wanted.count)
        return (
            isinstance(got, Folded)
            and got.monoid == wanted.monoid
            and got.count == wanted.count
            and same(given, got.of(number), wanted.of(number))
        )
    if wanted is ANY:
        return True
    if isinstance(wanted, tuple):
        return isinstance(got, tuple) and all(x == y for x, y in zip(got, wanted, strict=True))
    return not isinstance(got, tuple | str) and got == wanted


def made(step: Step, x: Local) -> Any:
    """What the ops of a step make of a local array."""
    return step.ops(x)[-1]  # pyright: ignore[reportArgumentType]


# Layouts of any sizes. A text has the factors of each dim, major to minor: numbers, and names of sizes. Of these a, b and c are
# axes, d and e are parts of one axis. `p*a*m, q --> p*a'*m, q` has the axis a between p and m of the first dim; then a' is an
# extent, as long as the axis.

AXES, PARTS = "abc", "de"


def placed_axes(sizes: Mapping[str, Number]) -> dict[str, Place]:
    """The axes of these names and sizes; d and e are parts of one axis."""
    axes, parts = ({name: n for name, n in sizes.items() if name in names} for names in (AXES, PARTS))
    *places, last = Devices((*axes.items(), ("d", prod(parts.values())))).places
    found: dict[str, Place] = dict(zip(axes, places, strict=True))
    found |= {name: SubAxis(last, tuple(parts.values()), i) for i, name in enumerate(parts)}
    return found


def dims(text: str) -> list[list[str]]:
    return [dim.strip().split("*") for dim in text.partition("{")[0].split(",")]


class Sized:
    """The layouts before and after a step, as a text has them; all sizes are any but those that are known."""

    def __init__(self, given: Given, text: str, known: Mapping[str, int]) -> None:
        self.given, (self.here_text, self.there_text) = given, text.split("-->")
        names = dict.fromkeys(re.findall(r"\d+|[a-z]", text))
        known = {**known, **{name: int(name) for name in names if name.isdigit()}}
        self.sizes = {name: known.get(name) or given.size(name) for name in names}
        self.axes = placed_axes({name: n for name, n in self.sizes.items() if name in AXES + PARTS})
        self.here: Here = {axis: given.digit(f"at {name}", axis.size) for name, axis in self.axes.items()}
        self.before, self.after = self.layout(self.here_text), self.layout(self.there_text)

    def spots(self, text: str) -> dict[str, tuple[int, Number]]:
        """The dim and the stride of each axis that is placed."""
        found = dict[str, tuple[int, Number]]()
        for dim, names in enumerate(dims(text)):
            stride: Number = 1
            for name in reversed(names):
                if name in self.axes:
                    found[name] = dim, stride
                stride = stride * self.sizes[name.rstrip("'")]
        return found

    def layout(self, text: str) -> Layout:
        shape = [prod(self.sizes[name.rstrip("'")] for name in names) for names in dims(text)]
        return Layout.of(shape, [(dim, Factor(self.axes[name], stride)) for name, (dim, stride) in self.spots(text).items()])

    def index(self) -> Index:
        """An index of the local arrays after the step: a digit for each size that no axis takes."""
        found = list[Number]()
        for dim, names in enumerate(dims(self.there_text)):
            at: Number = 0
            for number, name in enumerate(names):
                if name not in self.axes:
                    n = self.sizes[name.rstrip("'")]
                    at = at * n + self.given.digit(f"{name} {dim}.{number}", n)
            found.append(at)
        return tuple(found)


def tiled(kind: type[Step], over: str, text: str) -> Law:
    """The law of a step over axes, major to minor, that lie side by side where a layout places them."""

    def law(given: Given) -> bool:
        sized = Sized(given, text, {})
        axes, is_fold = tuple(sized.axes[name] for name in over), "{" in text
        places = [spots[over[-1]] for side in text.split("-->") if over[-1] in (spots := sized.spots(side))]
        step = kind.of(*["add"][:is_fold], axes, *(number for place in places for number in place))
        step, index = replace(step, before=sized.before, after=sized.after), sized.index()

        def part(here: Here, index: Index) -> Element:
            """What a device has; of a pending fold, its own operand."""
            return *(here[axis] for axis in axes if is_fold), *element(sized.before, here, index)

        def operand(number: Number) -> Element:
            there = member(axes, sized.here, number)
            return *(there[axis] for axis in axes), *wanted

        got, wanted = made(step, Local(sized.before.local_shape, part)), element(sized.after, sized.here, index)
        result = Folded("add", devices(axes), operand) if is_fold else wanted
        return got.shape == sized.after.local_shape and same(given, got.at(sized.here, index), result)

    return law
