"""The laws of steps that send between given devices: permutes, halos and pieces; and of pads and cuts.

How many devices there are is a number of the code that emits these steps, which lists who sends to whom. So it is given here,
and all other numbers are any: extents, blocks, strides, where windows begin, and how long they are.
"""

# What ops do is said of numbers of any kind.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialects.layouts import Layout
from ....dialects.ranges.algebra import Axis, Devices, major_to_minor
from ....dialects.ranges.factor import Factor, windowed
from ...redistribute.kinds.halo import Halo, exchanged
from ...redistribute.kinds.local import Cut, Pad
from ...redistribute.kinds.permute import Permute
from ...redistribute.kinds.pieces import Pieces
from ...redistribute.steps import Path, Step
from ..symbolic.explore import Law
from ..symbolic.given import Given
from ..values import Number
from ..verdict import suppose
from .local_arrays import Element, Here, Local
from .steps import Sized, element, held, made, same

# Halos. Each of these says how a dim of so many rows lies on an axis, by names that begin with the given one.

Rows = Callable[[Given, str, Axis, Number], "Factor | None"]


def whole(given: Given, name: str, axis: Axis, extent: Number) -> None:
    return None


def blocks(given: Given, name: str, axis: Axis, extent: Number) -> Factor:
    """Equal blocks that reach to the end of the dim or beyond it."""
    block = given.number(f"{name} block", 1)
    suppose(block * axis.size >= extent)
    return Factor(axis, block)


def even(given: Given, name: str, axis: Axis, extent: Number) -> Factor:
    """Blocks of the whole dim, which the axis divides."""
    block = given.number(f"{name} block", 1)
    suppose(block * axis.size == extent)
    return Factor(axis, block)


def windows(direction: int = 1, stride: str = "") -> Rows:
    """Windows of any stride, or of one that is given already; of all that devices have, some have rows outside of the dim."""

    def windows(given: Given, name: str, axis: Axis, extent: Number) -> Factor:
        apart = given.number(stride or f"{name} stride", 1) * direction
        before, width = given.integer(f"{name} before"), given.number(f"{name} width", 1)
        return windowed(extent, Factor(axis, apart), before, width - before - apart)

    return windows


def shifted(given: Given, name: str, axis: Axis, extent: Number) -> Factor:
    """Blocks that begin any number of rows before those of the layout before."""
    block, before = given.number("before block", 1), given.integer(f"{name} before")
    return windowed(extent, Factor(axis, block), before, -before)


def halo(count: int, here: Rows, *there: Rows) -> Law:
    """The law of the halos of one array or of several, which then share permutes, on so many devices."""

    def law(given: Given) -> bool:
        axis, extent = Axis("a", count), given.number("extent", 1)
        have = here(given, "before", axis, extent)
        if have is not None and have.has_halo:
            suppose(have.covers(extent))
        ends = [each(given, f"after{number or ''}", axis, extent) for number, each in enumerate(there)]
        for want in ends:
            suppose(have is None or want is None or not are_alike(have, want))
        before = layout(extent, have)
        steps = [Halo(before=before, after=layout(extent, each), dim=0, unit=4, axes=(axis,)) for each in ends]
        got = [made(steps[0], held(before))] if len(steps) == 1 else jointly(steps, before)
        at: Here = {axis: given.digit("device", count)}
        for number, (step, array) in enumerate(zip(steps, got, strict=True)):
            index = (given.index(f"row{number or ''}", step.after.local_shape[0]),)
            wanted = element(step.after, at, index)
            if array.shape != step.after.local_shape or not same(given, array.at(at, index), marked(wanted, number)):
                return False
        return True

    return law


def layout(extent: Number, factor: Factor | None) -> Layout:
    return Layout.of((extent,), [] if factor is None else [(0, factor)])


def are_alike(one: Factor, other: Factor) -> bool:
    return one.stride == other.stride and one.before == other.before and one.after == other.after


def marked(found: Element, number: int) -> Element:
    """An element of one of several arrays."""
    return (*found, number) if isinstance(found, tuple) and number else found


def jointly(steps: Sequence[Halo], before: Layout) -> list[Local]:
    def array(number: int) -> Local:
        return Local(before.local_shape, lambda here, index: marked(element(before, here, index), number))

    ways = [Path.of(step.receiving((1,))) for step in steps]
    return exchanged(ways, [array(number) for number in range(len(steps))])[1]  # pyright: ignore


# Permutes and pieces. All numbers are any but the sizes that are given, and those that are written as numbers.


def between(kind: Callable[[Layout, Layout], Step | None], text: str, **sizes: int) -> Law:
    """The law of the step of a kind between two layouts."""

    def law(given: Given) -> bool:
        sized = Sized(given, text, sizes)
        have, want = sized.before, sized.after
        step = kind(have, want)
        suppose(step is not None)
        assert step is not None
        got, index = made(step, held(have)), sized.index()
        return got.shape == want.local_shape and same(given, got.at(sized.here, index), element(want, sized.here, index))

    return law


def permute(before: Layout, after: Layout) -> Step | None:
    axes = (each.axis for layout in (before, after) for _, each in layout.factors)
    step = Permute(axes=major_to_minor(axes), before=before, after=after)
    return step if step.fits() else None


def pieces(before: Layout, after: Layout) -> Step | None:
    return Pieces.between(before, after, 4)


# Pads and cuts.


def resized(kind: type[Pad | Cut]) -> Law:
    """The law of a pad, or of a cut, of an array of which devices then have more blocks, or fewer."""

    def law(given: Given) -> bool:
        p, q, r, s = (given.size(name) for name in "pqrs")
        a, b = Devices((("a", given.size("a")), ("b", given.size("b")))).places
        more, block = given.number("more", 1), q * b.size * r
        factors = [(0, Factor(a, block)), (0, Factor(b, r))]
        few, many = (Layout.of((count * a.size * block, s), factors) for count in (p, p + more))
        have, want = (few, many) if kind is Pad else (many, few)
        got = made(kind(before=have, after=want), held(have))
        at: Here = {axis: given.digit(f"at {axis}", axis.size) for axis in (a, b)}
        number = given.digit("block", p)
        if kind is Pad and given.digit("is behind", 2):
            number = p + given.digit("block behind", more)
        index = (number * q + given.digit("part", q)) * r + given.digit("row", r), given.digit("column", s)
        row, column = element(want, at, index)
        is_padding = row >= few.global_shape[0]
        return got.shape == want.local_shape and (is_padding or same(given, got.at(at, index), (row, column)))

    return law


def cut_from(given: Given) -> bool:
    """The law of a cut of a dim that every device has, from any row on."""
    rows, first, behind = given.number("rows", 1), given.number("first"), given.number("behind")
    have, want = (Layout.of((n,)) for n in (first + rows + behind, rows))
    got = made(Cut(before=have, after=want, first=(first,)), held(have))
    index = given.index("row", rows)
    return got.shape == want.local_shape and same(given, got.at({}, (index,)), (first + index,))
