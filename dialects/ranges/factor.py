"""A placed factor of a range: tactics claim it, propagation carries it, and layouts are made of it.

A range of 512 is the product `4 * 128`. With its factor 4 on the mesh axis `data`, it is `data*128`: device `data=i` holds the
128 elements from `128·i` on. The placed factor is `data`, its size 4 and its stride 128.

    512, data at 128               -->  data*128
    512, data at 128, model at 64  -->  data*model*64
    12, model at 6, data at 1      -->  model*2*data

It may read beyond its block, as a window over the range does: the halo. A device then holds more than its block, or less.

    512, data at 128, one element before and one after   -->   win<128,130,1,1>(data) of 512

Several factors of a dim can be joined into one factor, on the product of their places. Only the minor one has a halo.

    512, data at 128, model at 64, one element before and one after   -->   win<64,66,1,1>(data*model) of 512
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from ..ground.errors import Error
from ..ground.interned import Interned, intern
from .denotation import size
from .laws import product, sub, window
from .terms import Of, Place, Product, Range, placed
from .windows import windows_of


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Factor(Interned):
    """A place, and how many elements lie between neighbouring iterations there: `data*128`.

    With stride 0 every iteration has the same elements: the range is replicated over the place. With a `halo`, iterations hold
    windows of the range: so many elements before and after the block; a negative number says that a window has fewer than that.
    Only windows have a negative stride: later iterations hold earlier elements. A place that is a product is that of several
    factors together.

    ```
    iteration i holds   [i·stride - before, (i + 1)·stride + after)   of the range; outside of the range they are zeros
    ```
    """

    place: Place | Product
    stride: int
    halo: tuple[int, int] | None
    size: int = field(init=False)

    def __new__(cls, place: Place | Product, stride: int, halo: tuple[int, int] | None = None) -> Factor:
        return intern(cls, place, stride, halo)

    def check(self) -> None:
        object.__setattr__(self, "size", size(self.place))

    @property
    def axis(self) -> Place:
        """The mesh axis of the factor, which must be on one axis alone."""
        return cast(Place, self.place)

    @property
    def axes(self) -> tuple[Place, ...]:
        """The mesh axes of the factor, major to minor. Most factors have one."""
        return placed(self.place)

    @property
    def parts(self) -> list[Factor]:
        """The factor as one factor on each of its places, major to minor: the inverse of `joined`."""
        return split_factor(placed(self.place), self)

    @property
    def span(self) -> int:
        """The number of elements from the first block to the last: `size` times the stride."""
        return self.size * abs(self.stride)

    @property
    def before(self) -> int:
        """The number of elements that an iteration holds before its block."""
        return self.halo[0] if self.halo is not None else 0

    @property
    def after(self) -> int:
        """The number of elements that an iteration holds after its block."""
        return self.halo[1] if self.halo is not None else 0

    @property
    def width(self) -> int:
        """The number of elements that an iteration holds, block and halo, if no other factor is minor to it."""
        return self.before + self.stride + self.after

    @property
    def has_halo(self) -> bool:
        """Whether iterations hold windows of the range instead of the blocks of a tiling."""
        return self.halo is not None

    @property
    def is_tiling(self) -> bool:
        """Whether iterations hold disjoint elements, without gaps between them."""
        return self.before == -self.after

    def start(self, iteration: int) -> int:
        """The first element that an iteration holds; negative if it lies before the range."""
        return iteration * self.stride - self.before

    @property
    def begin(self) -> int:
        """The first element that any iteration holds."""
        return self.start(0 if self.stride > 0 else self.size - 1)

    @property
    def end(self) -> int:
        """The end (exclusive) of what the iterations hold."""
        return self.start(self.size - 1 if self.stride > 0 else 0) + self.width

    @property
    def own(self) -> int:
        """The number of rows that a fold counts on an iteration: those before the next iteration's window.

        Only for positive strides.
        """
        return min(self.stride, self.width)

    def covers(self, extent: int) -> bool:
        """Whether the iterations together hold every element of a range of this extent."""
        return self.begin <= 0 and self.end >= extent and (self.width >= abs(self.stride) or self.size == 1)

    def overhangs(self, extent: int) -> bool:
        """Whether an iteration holds positions outside of a range of this extent."""
        return self.begin < 0 or self.end > extent

    def leaves_out(self, extent: int) -> bool:
        """Whether an iteration holds no element of a range of this extent."""
        return any(begin == end for begin, end in (self.held(0, extent), self.held(self.size - 1, extent)))

    def is_in_turn(self, extent: int) -> bool:
        """Whether blocks are dealt in rounds, so that each iteration holds several blocks of a range of this extent."""
        return not self.has_halo and self.span < extent

    def window(self, iteration: int, extent: int) -> range:
        """The elements of a range of this extent that an iteration holds."""
        return range(*self.held(iteration, extent))

    def held(self, iteration: int, extent: int) -> tuple[int, int]:
        """The first of these elements, and the end of them: the same number if there are none."""
        start = self.start(iteration)
        return max(0, start), max(0, start, min(start + self.width, extent))

    def holds(self, other: Factor, extent: int) -> bool:
        """Whether each iteration holds, in one of its blocks, what it would hold under `other`, a factor on the same place."""
        if (in_turn := self.is_in_turn(extent)) and other.stride != self.stride:
            return False
        for i in range(self.size):
            mine, its = self.window(i, extent), other.window(i, extent)
            turn = its.start // self.span * self.span if in_turn else 0
            if its and not (turn + mine.start <= its.start and its.stop <= turn + mine.stop):
                return False
        return True

    def even(self, extent: int, padded: bool) -> Factor | None:
        """Returns equal blocks of a range of this extent on the same place, padded if allowed.

        Returns None if its size does not divide it.
        """
        return self.at(-(-extent // self.size)) if padded or extent % self.size == 0 else None

    def at(self, stride: int) -> Factor:
        """Returns the factor on the same place with another stride, without a halo."""
        return self if stride == self.stride and not self.has_halo else Factor(self.place, stride)

    def spread(self, apart: int) -> Factor:
        """Returns the factor with its stride multiplied by `apart`; place and halo stay."""
        return Factor(self.place, self.stride * apart, self.halo)

    def outward(self, minor: int) -> Factor:
        """The factor of a dim, given the factor of one of its indices.

        Neighbouring values of the index are `minor` elements apart.

        ```
        dim of (i: 8, j: 64), data at 2 of i   -->   data at 128 of the dim
        ```
        """
        if minor == 1:
            return self
        return Factor(self.place, self.stride * minor, self.halo and (self.before * minor, self.after * minor))

    def inward(self, minor: int, extent: int | None = None) -> Factor | None:
        """The inverse of `outward`, for an index of `extent` values; None if the factor does not lie within the index.

        Without an extent, the index is the major one of its dim, which may be padded.

        ```
        dim of (i: 8, j: 64), data at 128 of the dim   -->   data at 2 of i, and None for j
        ```
        """
        if minor > abs(self.stride) or (extent is not None and (self.has_halo or self.span > minor * extent)):
            return None
        if minor == 1:
            return self
        if any(n % minor for n in (self.stride, self.before, self.after)):
            return None
        return Factor(self.place, self.stride // minor, self.halo and (self.before // minor, self.after // minor))

    def __str__(self) -> str:
        halo = f" halo {self.before}, {self.after}" if self.has_halo else ""
        return f"{self.place}*{self.stride}{halo}"


def joined(extent: int, factors: Sequence[Factor]) -> Factor | None:
    """Joins the factors of one dim into one factor; None unless the stride of each is the span of the next.

    The minor one says what an iteration holds beyond its block.

    ```
    512, a*128 and b*64 halo 1, 1 (4 and 2 devices)   -->   a*b*64 halo 1, 1
    ```
    """
    if len(factors) < 2:
        return factors[0] if factors else None
    *majors, last = major_first(factors)
    # A place of one iteration divides nothing; the minor one may still have a halo.
    ordered = [*(each for each in majors if each.size > 1), *([last] if last.size > 1 or last.has_halo else [])] or factors[:1]
    if any(major.stride != minor.size * minor.stride for major, minor in pairwise(ordered)):
        return None
    *_, minor = ordered
    place = product(*(each.place for each in ordered))
    assert isinstance(place, Place | Product), "a product of places is a place"
    blocks = Factor(place, minor.stride)
    return windowed(extent, blocks, minor.before, minor.after) if minor.has_halo else blocks


def split_factor(places: Sequence[Place | Product], one: Factor) -> list[Factor]:
    """Splits a factor into one factor on each of these places, major to minor."""
    found, stride = list[Factor](), one.stride
    for place in reversed(places):
        found.append(Factor(place, stride, None if found else one.halo))
        stride *= found[-1].size
    return found[::-1]


def settled(extent: int, factors: list[Factor]) -> list[Factor]:
    """Moves the halo to the minor factor, if the factors of a dim can be joined; the others become blocks.

    ```
    512, a*128 halo 1, 1 and b*64 halo 1, 1   -->   a*128 and b*64 halo 1, 1
    ```
    """
    if len(factors) < 2 or not any(factor.has_halo for factor in factors) or (one := joined(extent, factors)) is None:
        return factors
    return split_factor([each.place for each in major_first(factors)], one)


def crossing(beside: Sequence[Factor], extent: int, cross: Callable[..., Factor | None], *factors: Factor) -> Factor | None:
    """Takes a factor through `cross`, joined with the factors `beside` it on its dim, and returns its part of the result.

    If they cannot be joined, the factor crosses alone.

    ```
    b*64, beside a*128, of 512, through a window with one element before   -->   b*64 halo 1, 0
    ```
    """
    if not beside:
        return cross(*factors)
    every = [major_first((*beside, factor)) for factor in factors]
    wholes = [joined(extent, each) for each in every]
    if None in wholes:
        return cross(*factors)
    if (there := cross(*wholes)) is None:
        return None
    parts = split_factor([each.place for each in every[0]], there)
    return next(part for part in parts if part.place is factors[0].place)


def joint_windows(extent: int, factors: Sequence[Factor]) -> Factor | None:
    """The windows that the factors of one dim make together; None if they make blocks."""
    one = joined(extent, factors) if any(factor.has_halo for factor in factors) else None
    return one if one is not None and one.has_halo else None


def padded(extent: int, factors: Sequence[Factor]) -> int:
    """The extent with padding: the given extent, or the span of the major factor if that is longer.

    ```
    32, data*4 (8 devices)  -->  32          30, data*4 (8 devices)  -->  32
    ```
    """
    return extent if joint_windows(extent, factors) else max([extent, *(factor.span for factor in factors)])


def is_padded(extent: int, factors: Sequence[Factor]) -> bool:
    """Whether the factors reach beyond the extent, so that it is padded."""
    return padded(extent, factors) > extent


def overhang(extent: int, factors: Sequence[Factor]) -> bool:
    """Whether iterations hold rows outside of the extent: padding of blocks, or windows that reach beyond it."""
    one = joint_windows(extent, factors)
    return is_padded(extent, factors) if one is None else one.overhangs(extent)


def fit(extent: int, factors: Sequence[Factor]) -> bool:
    """Whether the factors tile an extent together, perhaps padded. The extent is then a product with each factor in it.

    Windows fit if they are one factor, and together hold every element.

    ```
    512, data*128 (4 devices)  -->  yes          6, data*2 (2 devices)  -->  no: 2·2 does not divide 6
    ```
    """
    if any(factor.has_halo for factor in factors):
        one = joined(extent, factors)
        return one is not None and one.covers(extent)
    outer = padded(extent, factors)
    for factor in major_first(factors):
        if factor.stride < 1 or factor.size < 1 or outer < 1 or outer % factor.span:
            return False
        outer = factor.stride
    return True


def tiling(extent: int, factors: Sequence[Factor]) -> Range:
    """The range of an extent with these factors placed. Raises `Error` if they do not divide it.

    ```
    512, data*128  -->  data*128          512, data*1  -->  128*data          30, data*4 (8 devices)  -->  data*4 pad 30
    ```
    """
    if (one := joint_windows(extent, factors)) is not None:
        return _windows(extent, one)
    if not fit(extent, factors):
        names = ", ".join(f"`{each.place}` (size {each.size}, stride {each.stride})" for each in major_first(factors))
        raise Error(f"an extent of {extent} does not divide over {names}")
    parts: list[Range | int] = []
    whole = outer = padded(extent, factors)
    for factor in major_first(factors):
        parts += [outer // factor.span, factor.place]
        outer = factor.stride
    r = product(*parts, outer)
    return r if whole == extent else sub(r, 0, extent)


def _windows(extent: int, factor: Factor) -> Range:
    """The range of which each iteration holds a window. Positions outside of the extent are cut off.

    ```
    512, data*64 halo 1, 1 (8 devices)  -->  win<64,66,1,1>(data) of 512
    ```
    """
    if not factor.stride or factor.width < 1:
        raise Error(f"`{factor}` has nothing of {extent} elements", label=f"each of {factor.size} holds {factor.width}")
    return Of(window(factor.place, factor.stride, factor.width, 1, factor.before), extent)


def windows_over(dim: Range) -> Factor | None:
    """The factor from which `tiling` made a range of windows, perhaps on several places; None if the range has no windows."""
    win = windows_of(dim)
    if win is None:
        return None
    base = win.base
    if not isinstance(base, Place | Product) or product(*placed(base)) is not base:
        raise Error(
            f"`{dim}` is not a range of windows, one for each device", helps=["write axes as the base: `win<...>(data)`"]
        )
    return Factor(base, win.stride, (win.lo, win.width - win.stride - win.lo))


def is_contiguous(extent: int, factors: Sequence[Factor]) -> bool:
    """Whether the factors are major to all else, so that each iteration holds one run of consecutive elements."""
    return natural(padded(extent, factors), factors) == major_first(factors)


def natural(extent: int, factors: Iterable[Factor]) -> list[Factor]:
    """Makes the factors the major ones, in the same order: `2*data*64 --> data*128`."""
    moved: list[Factor] = []
    for factor in major_first(factors):
        extent //= factor.size
        moved.append(factor.at(extent))
    return moved


def hull(extent: int, factors: Iterable[Factor], most: int = 1) -> Factor | None:
    """The smallest windows that contain all that the factors hold, and that together cover the range.

    None if blocks differ, or if the halo is longer than `most` blocks.

    ```
    514, data*64 halo -1, 1 and data*64 halo -2, 2 (8 devices)   -->   data*64 halo 0, 2
    ```
    """
    one, *others = factors
    if one.stride < 0 or one.is_in_turn(extent):
        return None if any(each is not one for each in others) else one
    if any(each.place != one.place or each.stride != one.stride for each in others):
        return None
    before = max(0, one.before, *(each.before for each in others))
    after = max(one.after, extent - one.span, -before, *(each.after for each in others))
    return windowed(extent, one.at(one.stride), before, after) if before + after <= most * one.stride else None


def are_apart(factors: Iterable[Factor]) -> bool:
    """Whether the windows of an iteration under two of the factors have a gap between them.

    ```
    128, data*16 halo 1, -1 and data*16 halo -127, 127 (8 devices)   -->   yes
    ```
    """
    windows = sorted((factor.start(0), factor.start(0) + factor.width) for factor in factors)
    return any(end < begin for (_, end), (begin, _) in pairwise(windows))


def middle(extent: int, factors: Iterable[Factor]) -> Factor | None:
    """Of tilings that begin at different elements, the one in the middle, so that the others are as near as possible.

    ```
    510, data*64 pad 510 and data*64 halo 2, -2 (8 devices)   -->   data*64 halo 1, -1
    ```
    """
    one, *others = factors
    if all(each is one for each in others):
        return one
    if any(each.place != one.place or each.stride != one.stride or not each.is_tiling for each in (one, *others)):
        return None
    begins = [each.before for each in (one, *others)]
    before = (min(begins) + max(begins)) // 2
    return windowed(extent, one.at(one.stride), before, -before)


def windowed(extent: int, blocks: Factor, before: int, after: int) -> Factor:
    """Extends blocks to windows by `before` and `after` elements; returns the blocks if that changes nothing."""
    plain = not before and not after and blocks.span >= extent
    return blocks if plain else Factor(blocks.place, blocks.stride, (before, after))


def major_first(factors: Iterable[Factor]) -> list[Factor]:
    """Sorts the factors of one extent, major to minor."""
    return sorted(factors, key=_distance, reverse=True)


def _distance(factor: Factor) -> tuple[int, int]:
    """The sort key: the distance of neighbouring iterations in either direction, then the size."""
    return abs(factor.stride), factor.size
