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

from ..errors import Error
from ..mesh import Mesh
from .laws import known_size, whole, window_size
from .terms import (
    Axis,
    Extent,
    Loop,
    Of,
    Pad,
    Placed,
    Product,
    Range,
    Sub,
    SubAxis,
    Sum,
    Window,
    placed,
)
from .windows import reads, windows_of

_NOWHERE = Mesh()
_Point = tuple[int, int | None]


@lru_cache(maxsize=1 << 16)
def size(r: Range, mesh: Mesh = _NOWHERE) -> int:
    """|r|: how many indices a range has, over all devices and iterations."""
    known = known_size(r)
    if known is not None:
        return known
    match r:
        case Axis(name):
            return mesh[name]
        case Product(parts):
            return math.prod(size(part, mesh) for part in parts)
        case Sum(parts):
            return sum(size(part, mesh) for part in parts)
        case Pad(base, lo, hi):
            return lo + size(base, mesh) + hi
        case Window(base):
            return window_size(r, size(base, mesh)) if whole(base) else len(_points(r, {}, mesh))
        case _:
            raise TypeError(r)


@lru_cache(maxsize=1 << 16)
def local(r: Range, mesh: Mesh = _NOWHERE) -> int:
    """How many indices one iteration holds: the size without the placed factors, or the largest if iterations differ.

    The iterations of a padded range hold equally many; the last ones are undefined.

    ```
    data*128  -->  128          data*129 pad 515, data = 4  -->  129   (of which the last device defines 128)
    ```
    """
    if isinstance(r, Sub) and r.is_padded:
        return local(r.base, mesh)
    if (windows := windows_of(r)) is not None:
        return windows.width
    if not _even(r):
        return max(len(denote(r, at, mesh)) for at in _iterations(r, mesh))
    match r:
        case Axis() | SubAxis() | Loop():
            return 1
        case Product(parts):
            return math.prod(local(part, mesh) for part in parts)
        case Sum(parts):
            return sum(local(part, mesh) for part in parts)
        case Pad(base, lo, hi):
            return lo + local(base, mesh) + hi
        case _:
            return size(r, mesh)


def denote(r: Range, coordinates: Mapping[str, int], mesh: Mesh = _NOWHERE) -> list[int | None]:
    """The positions that the iteration at `coordinates` holds, in order; None where there is none (padding).

    A name (`data`, `t`, `data.0`) that `coordinates` leaves out runs over all of its values, so `{}` gives the whole
    range.
    """
    return [_defined(position) for _, position in _points(r, coordinates, mesh)]


def block(r: Range, coordinates: Mapping[str, int], mesh: Mesh = _NOWHERE) -> list[int | None]:
    """What the iteration holds in an array of `local(r)` elements: as `denote`, and None where it is outside of the range."""
    if isinstance(r, Sub) and r.is_padded:
        return [p if p is not None and p < r.length else None for p in denote(r.base, coordinates, mesh)]
    if (windows := windows_of(r)) is not None:
        extent = size(r, mesh)
        return [p if 0 <= p < extent else None for p in _interval(windows, coordinates, mesh)]
    return denote(r, coordinates, mesh)


def _defined(position: int | None) -> int | None:
    """The position, or None if it is undefined. Positions before 0, which a window may reach, are undefined too."""
    return None if position is None or position < 0 else position


def _points(r: Range, at: Mapping[str, int], mesh: Mesh) -> list[_Point]:
    """The indices of one iteration, each with its position: the denotation, term by term."""
    match r:
        case Extent(n):
            return [(i, i) for i in range(n)]
        case Axis() | SubAxis() | Loop():
            return [(i, i) for i in _values(r, at, mesh)]
        case Product(parts):
            return _product_points(parts, at, mesh)
        case Sum(parts):
            return _sum_points(parts, at, mesh)
        case Sub(base, offset, length, step):
            inside = range(offset, offset + length * step, step)
            return [(inside.index(i), position) for i, position in _points(base, at, mesh) if i in inside]
        case Pad(base, lo, hi):
            held = [(lo + i, position) for i, position in _points(base, at, mesh)]
            after = lo + size(base, mesh)
            return [*((i, None) for i in range(lo)), *held, *((after + i, None) for i in range(hi))]
        case Window():
            return _window_points(r, at, mesh)
        case Of(base, n):
            return [(p, p) for _, p in _points(base, at, mesh) if p is not None and 0 <= p < n]
        case _:
            raise TypeError(r)


def _product_points(parts: tuple[Range, ...], at: Mapping[str, int], mesh: Mesh) -> list[_Point]:
    points: list[_Point] = [(0, 0)]
    for part in parts:
        inner, count, room = _points(part, at, mesh), size(part, mesh), space(part, mesh)
        inner = [(j, _defined(q)) for j, q in inner]
        points = [(i * count + j, None if p is None or q is None else p * room + q) for i, p in points for j, q in inner]
    return points


def _sum_points(parts: tuple[Range, ...], at: Mapping[str, int], mesh: Mesh) -> list[_Point]:
    points: list[_Point] = []
    before = start = 0
    for part in parts:
        held = [(i, _defined(p)) for i, p in _points(part, at, mesh)]
        points += [(before + i, None if p is None else start + p) for i, p in held]
        before, start = before + size(part, mesh), start + space(part, mesh)
    return points


def _window_points(w: Window, at: Mapping[str, int], mesh: Mesh) -> list[_Point]:
    """The interval from the first to the last input that the held outputs read, counted from the first of all."""
    read = _interval(w, at, mesh)
    start = _interval(w, {}, mesh).start if read else 0
    return [(position - start, position) for position in read]


def _interval(w: Window, at: Mapping[str, int], mesh: Mesh) -> range:
    outputs = [position for _, position in _points(w.base, at, mesh)]
    held = [i for i, position in enumerate(outputs) if position is not None]
    if not held:
        return range(0)
    # Undefined outputs at either end are computed too, beside the defined ones.
    first = (outputs[held[0]] or 0) - held[0]
    last = (outputs[held[-1]] or 0) + len(outputs) - 1 - held[-1]
    return range(*reads(w, first, last + 1))


@lru_cache(maxsize=1 << 16)
def space(r: Range, mesh: Mesh = _NOWHERE) -> int:
    """The extent that contains a range's positions: its size, or for a sub-range and a pad the extent of the base.

    ```
    512[0 : 256 : 1]  -->  512          pad(509, 0, 3)  -->  509
    ```
    """
    match r:
        case Product(parts):
            return math.prod(space(part, mesh) for part in parts)
        case Sum(parts):
            return sum(space(part, mesh) for part in parts)
        case Sub(base) | Pad(base):
            return space(base, mesh)
        case Window():
            return max(0, _interval(r, {}, mesh).stop)
        case _:
            return size(r, mesh)


def _values(factor: Placed, at: Mapping[str, int], mesh: Mesh) -> list[int]:
    """The coordinates of a placed factor: the one that `at` gives, or all."""
    match factor:
        case Loop(name, n):
            return [at[name]] if name in at else list(range(n))
        case Axis(name):
            if name in at:
                return [at[name]]
            parts = [(key.partition(":")[0], n) for key, n in mesh.axes.items() if key.startswith(name + ".")]
            digits = [[at[key]] if key in at else range(n) for key, n in parts]
            sizes = mesh.sub_axes(name)
            return [_digits_to_number(d, sizes) for d in itertools.product(*digits)] if sizes else list(range(mesh[name]))
        case SubAxis(name, index, n):
            if f"{name}.{index}" in at:
                return [at[f"{name}.{index}"]]
            return [at[name] // _stride(factor, mesh) % n] if name in at else list(range(n))


def _digits_to_number(digits: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    number = 0
    for digit, n in zip(digits, sizes, strict=True):
        number = number * n + digit
    return number


def _stride(factor: SubAxis, mesh: Mesh) -> int:
    """The step of the axis' coordinate when the coordinate of its sub-axis grows by one."""
    parts, whole = mesh.sub_axes(factor.name), mesh[factor.name]
    if not parts and factor.index < 2 and whole % factor.size == 0:
        # A mesh that is not refined does not give the number of parts: assume two, this one and the rest.
        parts = (factor.size, whole // factor.size) if factor.index == 0 else (whole // factor.size, factor.size)
    if factor.index >= len(parts) or parts[factor.index] != factor.size:
        helps = [f"refine the mesh, as in `mesh.refine({factor.name}=(2, {max(1, whole // 2)}))`"]
        raise Error(f"the mesh `{mesh}` does not say where `{factor}` lies in `{factor.name}`", helps=helps)
    return math.prod(parts[factor.index + 1 :])


@lru_cache(maxsize=1 << 16)
def _even(r: Range) -> bool:
    """Whether every iteration holds the same number of indices, so that the numbers of the parts determine it.

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


def _iterations(r: Range, mesh: Mesh) -> Iterator[dict[str, int]]:
    """The coordinates of every iteration of a range: each of its axes, sub-axes and loops runs over all its values."""
    factors = placed(r)
    names = [f"{f.name}.{f.index}" if isinstance(f, SubAxis) else f.name for f in factors]
    for values in itertools.product(*(range(size(factor, mesh)) for factor in factors)):
        yield dict(zip(names, values, strict=True))
