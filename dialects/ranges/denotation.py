"""The meaning of a range: which positions of an extent each device and each iteration holds, in order.

A range carries its indices `[0, |r|)` into the positions `[0, space)` of an extent: in order, one to one, except that a
pad's indices have no position. Fixing the coordinates of its axes and loops picks the indices of one iteration; blocks
of a window overlap. All other code that computes positions is tested against `denote`.

```
data*2, data = 3, at data=1       . . # # . .
2*data, data = 3, at data=1       . # . . # .
```
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from .laws import known_size, whole, window_size
from .terms import (
    Axis,
    Extent,
    Loop,
    Of,
    Pad,
    Place,
    Product,
    Range,
    Sub,
    SubAxis,
    Sum,
    Window,
    coordinate,
    placed,
)
from .windows import reads, windows_of

_Point: TypeAlias = tuple[int, int | None]
"""An index, and the position that it has; None where there is none (padding)."""
Slot: TypeAlias = Callable[[int], _Point | None]
Slots: TypeAlias = tuple[int, Slot]


@lru_cache(maxsize=1 << 16)
def size(r: Range) -> int:
    """The number of indices of a range, over all devices and iterations: |r|."""
    known = known_size(r)
    if known is not None:
        return known
    match r:
        case Product(parts):
            return math.prod(size(part) for part in parts)
        case Sum(parts):
            return sum(size(part) for part in parts)
        case Pad(base, lo, hi):
            return lo + size(base) + hi
        case Window(base):
            if whole(base):
                return window_size(r, size(base))
            begin, end = interval(r, {})
            return end - begin
        case _:
            raise TypeError(r)


@lru_cache(maxsize=1 << 16)
def local(r: Range) -> int:
    """The number of indices that one iteration holds: the size without the placed factors, or the largest if iterations differ.

    The iterations of a padded range hold equally many; the last ones are undefined.

    ```
    data*128  -->  128          data*129 pad 515, data = 4  -->  129   (of which the last device defines 128)
    ```
    """
    if isinstance(r, Sub) and r.is_padded:
        return local(r.base)
    if (windows := windows_of(r)) is not None:
        return windows.width
    if not _even(r):
        return max(len(denote(r, at)) for at in _iterations(r))
    match r:
        case Axis() | SubAxis() | Loop():
            return 1
        case Product(parts):
            return math.prod(local(part) for part in parts)
        case Sum(parts):
            return sum(local(part) for part in parts)
        case Pad(base, lo, hi):
            return lo + local(base) + hi
        case _:
            return size(r)


def denote(r: Range, coordinates: Mapping[Place, int]) -> list[int | None]:
    """The positions that the iteration at `coordinates` holds, in order; None where there is none (padding).

    A place that `coordinates` leaves out runs over all of its values, so `{}` gives the whole range.
    """
    count, slot = slots(r, coordinates)
    return [defined(held[1]) for each in range(count) if (held := slot(each)) is not None]


def local_block(r: Range, coordinates: Mapping[Place, int]) -> list[int | None]:
    """As `denote`, in an array of `local(r)` elements, with None for positions outside of the range."""
    if isinstance(r, Sub) and r.is_padded:
        return [p if p is not None and p < r.length else None for p in denote(r.base, coordinates)]
    if (windows := windows_of(r)) is not None:
        extent = size(r)
        return [p if 0 <= p < extent else None for p in range(*interval(windows, coordinates))]
    return denote(r, coordinates)


def defined(position: int | None) -> int | None:
    """The position, or None if it is undefined. Positions before 0, which a window may reach, are undefined too."""
    return None if position is None or position < 0 else position


def slots(r: Range, at: Mapping[Place, int]) -> Slots:
    """How many slots an iteration has, and of each by its number the index in it and its position; None for an empty one.

    Sizes and coordinates may be any: nothing is counted one by one, save in windows over pads and parts of ranges.
    """
    match r:
        case Extent(n):
            return n, lambda j: (j, j)
        case Axis() | SubAxis() | Loop():
            if (only := at.get(r)) is not None:
                return 1, lambda j: (only, only)
            values = _values(r, at)
            return (r.size, lambda j: (j, j)) if values is None else (len(values), lambda j: (values[j], values[j]))
        case Product(parts):
            return _product_slots(parts, at)
        case Sum(parts):
            return _sum_slots(parts, at)
        case Sub(base):
            count, slot = slots(base, at)
            return count, lambda j: _inside(r, slot(j))
        case Pad(base, lo, hi):
            return _pad_slots(base, lo, hi, at)
        case Window():
            first, end = interval(r, at)
            start = interval(r, {})[0] if first < end else 0
            return end - first, lambda j: (first + j - start, first + j)
        case Of(base, n):
            count, slot = slots(base, at)
            return count, lambda j: _within(n, slot(j))
        case _:
            raise TypeError(r)


def _product_slots(parts: tuple[Range, ...], at: Mapping[Place, int]) -> Slots:
    every = [(*slots(part, at), size(part), space(part)) for part in parts]

    def slot(j: int) -> _Point | None:
        index, position, stride, distance = 0, 0, 1, 1
        has_place = True
        for count, inner, extent, room in reversed(every):
            j, digit = divmod(j, count)
            if (held := inner(digit)) is None:
                return None
            index, stride = index + held[0] * stride, stride * extent
            place = defined(held[1])
            has_place = has_place and place is not None
            position, distance = position + (place or 0) * distance, distance * room
        return index, position if has_place else None

    return math.prod(count for count, *_ in every), slot


def _sum_slots(parts: tuple[Range, ...], at: Mapping[Place, int]) -> Slots:
    every = [(*slots(part, at), size(part), space(part)) for part in parts]

    def slot(j: int) -> _Point | None:
        before = start = 0
        for count, inner, extent, room in every:
            if j < count:
                held = inner(j)
                place = None if held is None else defined(held[1])
                return held and (before + held[0], None if place is None else start + place)
            j, before, start = j - count, before + extent, start + room
        raise IndexError(j)

    return sum(count for count, *_ in every), slot


def _pad_slots(base: Range, lo: int, hi: int, at: Mapping[Place, int]) -> Slots:
    count, inner = slots(base, at)

    def slot(j: int) -> _Point | None:
        if j < lo:
            return j, None
        if j < lo + count:
            held = inner(j - lo)
            return held and (lo + held[0], held[1])
        return j - count + size(base), None

    return lo + count + hi, slot


def _inside(part: Sub, held: _Point | None) -> _Point | None:
    """What a sub-range makes of a slot of its base: empty if its index is none of those that the sub-range takes."""
    if held is None or held[0] < part.offset:
        return None
    index, rest = divmod(held[0] - part.offset, part.step)
    return (index, held[1]) if rest == 0 and index < part.length else None


def _within(extent: int, held: _Point | None) -> _Point | None:
    """What is left of a slot of windows over an extent: empty if its position is outside."""
    position = None if held is None else held[1]
    return (position, position) if position is not None and 0 <= position < extent else None


def interval(w: Window, at: Mapping[Place, int]) -> tuple[int, int]:
    """The interval of inputs that the held outputs of a window read, from the first to the last."""
    count, slot = slots(w.base, at)
    first, last = _outermost(count, slot), _outermost(count, lambda j: slot(count - 1 - j))
    # Undefined outputs at either end are computed too, beside the defined ones.
    return reads(w, first[0] - first[1], last[0] + last[1] + 1) if first and last else (0, 0)


def _outermost(count: int, slot: Slot) -> tuple[int, int] | None:
    """The position of the first slot that has one, and the number of undefined ones before it."""
    j = before = 0
    while j < count:
        held = slot(j)
        if held is not None and held[1] is not None:
            return held[1], before
        j, before = j + 1, before + (held is not None)
    return None


@lru_cache(maxsize=1 << 16)
def space(r: Range) -> int:
    """The extent that contains a range's positions: its size, or for a sub-range and a pad the extent of the base.

    ```
    512[0 : 256 : 1]  -->  512          pad(509, 0, 3)  -->  509
    ```
    """
    match r:
        case Product(parts):
            return math.prod(space(part) for part in parts)
        case Sum(parts):
            return sum(space(part) for part in parts)
        case Sub(base) | Pad(base):
            return space(base)
        case Window():
            return max(0, interval(r, {})[1])
        case _:
            return size(r)


def _values(factor: Place, at: Mapping[Place, int]) -> Sequence[int] | None:
    """The coordinates that agree with those in `at` of other parts of a place's axis; None if there are no other parts."""
    if isinstance(factor, Loop):
        return None
    along = factor.axis
    given = [(part, n) for part, n in at.items() if not isinstance(part, Loop) and part.axis is along]
    if not given:
        return None
    devices = range(0, along.size * along.stride, along.stride)
    there = [each for each in devices if all(coordinate(part, each) == n for part, n in given)]
    return sorted({coordinate(factor, each) for each in there})


@lru_cache(maxsize=1 << 16)
def _even(r: Range) -> bool:
    """Whether every iteration holds the same number of indices, so that `local` can be computed from the parts.

    It does not if a sub-range cuts through placed factors, or in a window, which depends on the positions of its outputs.
    """
    match r:
        case Product(parts) | Sum(parts):
            return all(map(_even, parts))
        case Pad(base):
            return _even(base)
        case Sub(base) | Window(base) | Of(base):
            return not placed(base)
        case _:
            return True


def _iterations(r: Range) -> Iterator[dict[Place, int]]:
    """Yields the coordinates of every iteration of a range: each of its axes, sub-axes and loops takes all its values."""
    factors = placed(r)
    for values in itertools.product(*(range(factor.size) for factor in factors)):
        yield dict(zip(factors, values, strict=True))
