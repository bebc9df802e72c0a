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
from collections.abc import Iterator, Mapping
from functools import lru_cache

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

_Point = tuple[int, int | None]


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
            return window_size(r, size(base)) if whole(base) else len(_points(r, {}))
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
    return [_defined(position) for _, position in _points(r, coordinates)]


def local_block(r: Range, coordinates: Mapping[Place, int]) -> list[int | None]:
    """As `denote`, in an array of `local(r)` elements, with None for positions outside of the range."""
    if isinstance(r, Sub) and r.is_padded:
        return [p if p is not None and p < r.length else None for p in denote(r.base, coordinates)]
    if (windows := windows_of(r)) is not None:
        extent = size(r)
        return [p if 0 <= p < extent else None for p in _interval(windows, coordinates)]
    return denote(r, coordinates)


def _defined(position: int | None) -> int | None:
    """The position, or None if it is undefined. Positions before 0, which a window may reach, are undefined too."""
    return None if position is None or position < 0 else position


def _points(r: Range, at: Mapping[Place, int]) -> list[_Point]:
    """The indices of one iteration, each with its position, computed term by term."""
    match r:
        case Extent(n):
            return [(i, i) for i in range(n)]
        case Axis() | SubAxis() | Loop():
            return [(i, i) for i in _values(r, at)]
        case Product(parts):
            return _product_points(parts, at)
        case Sum(parts):
            return _sum_points(parts, at)
        case Sub(base, offset, length, step):
            inside = range(offset, offset + length * step, step)
            return [(inside.index(i), position) for i, position in _points(base, at) if i in inside]
        case Pad(base, lo, hi):
            held = [(lo + i, position) for i, position in _points(base, at)]
            after = lo + size(base)
            return [*((i, None) for i in range(lo)), *held, *((after + i, None) for i in range(hi))]
        case Window():
            return _window_points(r, at)
        case Of(base, n):
            return [(p, p) for _, p in _points(base, at) if p is not None and 0 <= p < n]
        case _:
            raise TypeError(r)


def _product_points(parts: tuple[Range, ...], at: Mapping[Place, int]) -> list[_Point]:
    points: list[_Point] = [(0, 0)]
    for part in parts:
        inner, count, room = _points(part, at), size(part), space(part)
        inner = [(j, _defined(q)) for j, q in inner]
        points = [(i * count + j, None if p is None or q is None else p * room + q) for i, p in points for j, q in inner]
    return points


def _sum_points(parts: tuple[Range, ...], at: Mapping[Place, int]) -> list[_Point]:
    points: list[_Point] = []
    before = start = 0
    for part in parts:
        held = [(i, _defined(p)) for i, p in _points(part, at)]
        points += [(before + i, None if p is None else start + p) for i, p in held]
        before, start = before + size(part), start + space(part)
    return points


def _window_points(w: Window, at: Mapping[Place, int]) -> list[_Point]:
    """The inputs that the held outputs read, from the first to the last, each with its index in the whole range."""
    read = _interval(w, at)
    start = _interval(w, {}).start if read else 0
    return [(position - start, position) for position in read]


def _interval(w: Window, at: Mapping[Place, int]) -> range:
    outputs = [position for _, position in _points(w.base, at)]
    held = [i for i, position in enumerate(outputs) if position is not None]
    if not held:
        return range(0)
    # Undefined outputs at either end are computed too, beside the defined ones.
    first = (outputs[held[0]] or 0) - held[0]
    last = (outputs[held[-1]] or 0) + len(outputs) - 1 - held[-1]
    return range(*reads(w, first, last + 1))


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
            return max(0, _interval(r, {}).stop)
        case _:
            return size(r)


def _values(factor: Place, at: Mapping[Place, int]) -> list[int]:
    """The coordinates that a place may have: the one in `at`, or all that agree with other parts of its axis in `at`."""
    if factor in at:
        return [at[factor]]
    if isinstance(factor, Loop):
        return list(range(factor.size))
    along = factor.axis
    given = [(part, n) for part, n in at.items() if not isinstance(part, Loop) and part.axis is along]
    devices = range(0, along.size * along.stride, along.stride) if given else ()
    there = [each for each in devices if all(coordinate(part, each) == n for part, n in given)]
    return sorted({coordinate(factor, each) for each in there}) if given else list(range(factor.size))


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
