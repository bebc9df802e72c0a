"""The laws of the range algebra, as the constructors that apply them.

Each function makes a range in normal form. Ranges that are equal by the laws are one object, and no caller has to apply a
law twice:

```
(r * s) * t = r * (s * t)     1 * r = r = r * 1     0 * r = 0     p * q = n  iff  p·q = n
(r + s) + t = r + (s + t)     0 + r = r = r + 0     (r1 + r2) * s = r1*s + r2*s
r[0 : |r| : 1] = r            r[a : n : s][b : m : t] = r[a + b·s : m : s·t]
pad(r, 0, 0) = r              pad(pad(r, a, b), c, d) = pad(r, a + c, b + d)
win<1,1,1,0>(r) = r           win1(win2(r)) = (win1 ; win2)(r)
```

A window reads an interval, so a window of one element is its base only where each iteration holds consecutive elements: not of
`2*data`, whose iterations hold every other element.

`s * (r1 + r2) = s*r1 + s*r2` is *not* a law: the two differ by a permutation. A tail moves out of the major position
for free and out of the minor one only by moving data. `16 + 4 = 20` is not a law either, although both have the same size: a
sum records where a range is cut.
"""

from __future__ import annotations

from functools import lru_cache

from ..ground.errors import Error
from .terms import Axis, Extent, Loop, Of, Pad, Product, Range, Sub, SubAxis, Sum, Window
from .windows import compose

_ONE = Extent(1)
_ZERO = Extent(0)


def product(*factors: Range | int) -> Range:
    """The tiling of the factors, major to minor; `Error` if an axis is used twice.

    ```
    product(Axis("data", 4), 4, 32)  -->  data*128
    product(sum_(16, 4), Axis("data", 4))  -->  16*data + 4*data
    ```
    """
    flat: list[Range] = []
    for factor in factors:
        _append(flat, factor if isinstance(factor, Range) else Extent(factor))
    if _ZERO in flat:
        return _ZERO
    for i in range(len(flat) - 2, -1, -1):
        # Only the factors minor to a sum are distributed into it; the major ones stay outside.
        head = flat[i]
        if isinstance(head, Sum):
            tail = flat[i + 1 :]
            flat[i:] = [sum_(*(product(term, *tail) for term in head.terms))]
    return flat[0] if len(flat) == 1 else Product(tuple(flat)) if flat else _ONE


def _append(flat: list[Range], factor: Range) -> None:
    """Appends a factor at the minor end: products are flattened, units dropped, neighbouring extents merged."""
    if isinstance(factor, Product):
        for part in factor.factors:
            _append(flat, part)
    elif isinstance(factor, Extent) and flat and isinstance(flat[-1], Extent):
        flat[-1] = Extent(flat[-1].n * factor.n)
    elif factor is not _ONE:
        flat.append(factor)


def sum_(*terms: Range | int) -> Range:
    """The concatenation of the terms.

    ```
    sum_(16, sum_(0, 4))  -->  16 + 4
    ```
    """
    flat: list[Range] = []
    for given in terms:
        term = given if isinstance(given, Range) else Extent(given)
        flat += term.terms if isinstance(term, Sum) else () if term is _ZERO else (term,)
    return flat[0] if len(flat) == 1 else Sum(tuple(flat)) if flat else _ZERO


def sub(base: Range | int, offset: int, length: int, step: int = 1) -> Range:
    """`length` indices of `base` from `offset` on, every `step`-th; `Error` if they reach beyond its size.

    ```
    sub(sub(512, 128, 256), 0, 128, 2)  -->  512[128 : 128 : 2]
    ```
    """
    r = base if isinstance(base, Range) else Extent(base)
    size = known_size(r)
    if size is not None and length > 0 and offset + (length - 1) * step >= size:
        raise Error(f"`{r}` has {size} indices: [{offset} : {length} : {step}] reaches beyond them")
    part = Sub(r, offset, length, step if length > 1 else min(step, 1))
    if size == length:
        return r
    return sub(r.base, r.offset + offset * r.step, length, r.step * step) if isinstance(r, Sub) else part


def pad(base: Range | int, lo: int, hi: int) -> Range:
    """The range `base` with `lo` undefined elements before it and `hi` after it.

    ```
    pad(pad(512, 0, 3), 1, 1)  -->  pad(512, 1, 4)
    ```
    """
    r = base if isinstance(base, Range) else Extent(base)
    if lo == hi == 0:
        return r
    return Pad(r.base, r.lo + lo, r.hi + hi) if isinstance(r, Pad) and lo >= 0 and hi >= 0 else Pad(r, lo, hi)


def window(base: Range | int, stride: int, kernel: int, dilation: int = 1, lo: int = 0) -> Range:
    """The inputs that a window reads to compute the outputs `base`. A window over a window becomes one window.

    ```
    window(window(64, 2, 3, 1, 1), 1, 5, 1, 2)  -->  win<2,7,1,3>(64)
    ```
    """
    r = base if isinstance(base, Range) else Extent(base)
    made = Window(r, stride, kernel, dilation if kernel > 1 else 1, lo)
    if (stride, kernel, lo) == (1, 1, 0) and _is_consecutive(r):
        return r
    return compose(made, r) if isinstance(r, Window) else made


@lru_cache(maxsize=1 << 16)
def known_size(r: Range) -> int | None:
    """The number of indices of a range; None if it depends on what a window slides over."""
    match r:
        case Axis() | SubAxis() | Loop():
            return r.size
        case Extent(n) | Sub(_, _, n) | Of(_, n):
            return n
        case Product(parts):
            return _fold(parts, add=False)
        case Sum(parts):
            return _fold(parts, add=True)
        case Pad(base, lo, hi):
            size = known_size(base)
            return None if size is None else lo + size + hi
        case Window(base) if whole(base):
            size = known_size(base)
            return None if size is None else window_size(r, size)
        case _:
            return None


def whole(r: Range) -> bool:
    """Whether index i of a range is position i of its extent, for all i: true of products and sums of plain terms."""
    match r:
        case Product(parts) | Sum(parts):
            return all(map(whole, parts))
        case _:
            return not isinstance(r, Sub | Pad | Window | Of)


def _is_consecutive(r: Range) -> bool:
    """Whether the positions that each iteration holds are consecutive, whatever its sizes are: places are major to all else."""
    if isinstance(r, Product):
        return all(isinstance(part, Axis | SubAxis | Loop) for part in r.factors[:-1]) and _is_consecutive(r.factors[-1])
    return isinstance(r, Extent | Axis | SubAxis | Loop | Window)


def window_size(w: Window, outputs: int) -> int:
    """The number of inputs, from the first to the last, that a window reads for `outputs` consecutive outputs."""
    return (outputs - 1) * abs(w.stride) + w.width if outputs else 0


def _fold(parts: tuple[Range, ...], *, add: bool) -> int | None:
    total = 0 if add else 1
    for part in parts:
        size = known_size(part)
        if size is None:
            return None
        total = total + size if add else total * size
    return total
