"""The laws of the reads of windows, and of refinements and reshapes."""

from __future__ import annotations

from itertools import product as every
from math import prod
from typing import Any

from ....dialects.ranges.affine_read import AffineRead
from ....dialects.ranges.algebra import Extent, Window, reads, refine
from ....dialects.ranges.reshapes import refine_dims
from ..verdict import Nothing, suppose
from .cases import Coordinates, Given, RangeLaw, registering, shape
from .factor_laws import HALOS, positive

LAWS: dict[str, RangeLaw] = {}
law = registering(LAWS)


def any_read(given: Given, divisor: bool = True) -> AffineRead:
    window = Window(Extent(given.number("extent", 2)), *shape(given, ""))
    return AffineRead(window, given.number("n", 1), given.number("divisor", 1) if divisor else 1)


@law(
    "reads",
    "A device reads no element outside of the outward factor's window.",
    "e·divisor in reads(window(i))  -->  e in outward(f).window(i)",
    HALOS,
)
def outward_covers_what_is_read(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (factor, c), one = positive(given, at, kind), any_read(given)
    element = given.index("e", one.size)
    if factor.is_in_turn(one.extent) or (there := one.outward(factor)) is None:
        raise Nothing
    begin, end = reads(one.window, factor.start(c), factor.start(c) + factor.width)
    suppose(begin <= element * one.divisor < end)
    return there.start(c) <= element < there.start(c) + there.width


@law(
    "tight reads",
    "The window that a device reads begins and ends with elements that it reads: what is left is shorter than the divisor.",
    "gaps < divisor",
    HALOS[1:],
)
def gaps_are_short(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (factor, _), one = positive(given, at, kind), any_read(given)
    if factor.is_in_turn(one.extent) or (there := one.outward(factor)) is None:
        raise Nothing
    (first, last), (before, after) = one.positions(factor), one.gaps(factor)
    begin, end = there.start(0) * one.divisor, (there.start(0) + there.width - 1) * one.divisor
    return (first + before, last - after) == (begin, end) and 0 <= before < one.divisor and 0 <= after < one.divisor


@law(
    "rounds",
    "Where rounds agree, an element is on the device of the index's value that reads it.",
    "skips_rounds  -->  (v / s) mod p = (e / s) mod p",
)
def rounds_agree(given: Given) -> bool:
    (factor, _), shift = positive(given, {}, "blocks"), given.integer("lo")
    one = AffineRead(Window(Extent(given.number("extent", 2)), 1, 1, 1, shift), given.number("n", 1))
    value = given.index("v", one.extent)
    suppose(one.skips_rounds(factor))
    element = value - shift
    return not 0 <= element < one.size or value // factor.stride % factor.size == element // factor.stride % factor.size


@law(
    "staying windows",
    "Windows that stay where the middle of their reads is cover the index.",
    "staying(f).covers(extent)",
    HALOS[1:],
)
def staying_windows_cover(given: Given, kind: str) -> bool:
    (factor, _), one = positive(given, {}, kind), any_read(given)
    if (there := one.staying(factor)) is None:
        raise Nothing
    return there.covers(one.extent) or (not there.has_halo and there.span >= one.extent)


@law(
    "read once",
    "Where reads tile the dim, each element is in the window of one device alone.",
    "tiles(f)  -->  start(i) + width = start(i + 1)",
    HALOS,
)
def read_once(given: Given, kind: str) -> bool:
    (factor, _), one = positive(given, {}, kind), any_read(given)
    if factor.is_in_turn(one.extent) or (there := one.tiles(factor)) is None:
        raise Nothing
    i = given.number("i")
    return there.start(i) + there.width == there.start(i + 1) and there.span >= one.size - max(0, there.after)


# Refinements.


def _cut(numbers: list[Any], cuts: tuple[bool, ...]) -> list[Any]:
    """Neighbours multiplied, except where it is cut between them."""
    made = [numbers[0]]
    for cut, each in zip(cuts, numbers[1:], strict=True):
        made = [*made, each] if cut else [*made[:-1], made[-1] * each]
    return made


CUTS = list(every((True, False), repeat=2))
REFINED = [(p, q) for p in CUTS for q in CUTS]


@law(
    "refinement",
    "The refinement is cut where one of the two factorisations is, for up to three factors.",
    "refine([x·y, z], [x, y·z])  -->  [x, y, z]",
    REFINED,
)
def refinement_is_common(given: Given, p: tuple[bool, ...], q: tuple[bool, ...]) -> bool:
    numbers = [given.number(name, 2) for name in "xyz"]
    both = tuple(x or y for x, y in zip(p, q, strict=True))
    return refine(_cut(numbers, p), _cut(numbers, q)) == _cut(numbers, both)


@law(
    "refined factors",
    "What refines two factorisations of two factors each refines both.",
    "refine([a, b], [c, d]) = [x, y, z]  -->  a = x, b = y·z, c = x·y, d = z",
)
def refined_factors(given: Given) -> bool:
    a, b, c, d = (given.number(name, 2) for name in "abcd")
    suppose(a * b == c * d)
    if (found := refine([a, b], [c, d])) is None:
        raise Nothing
    return prod(found) == a * b and any(prod(found[:k]) == a for k in range(4)) and any(prod(found[:k]) == c for k in range(4))


@law("reshapes", "The factors of each dim of a reshape multiply to the dim.", "refine_dims([x·y, z], [x, y·z])", REFINED)
def reshaped_dims(given: Given, p: tuple[bool, ...], q: tuple[bool, ...]) -> bool:
    numbers = [given.number(name, 2) for name in "xyz"]
    dims = [*(left := _cut(numbers, p)), *(right := _cut(numbers, q))]
    found = refine_dims(left, right)
    return all(each is not None and prod(n for _, n in each) == dim for each, dim in zip(found, dims, strict=True))
