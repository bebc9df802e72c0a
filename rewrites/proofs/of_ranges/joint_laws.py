"""The laws of several factors of one dim: joined, split, tiled together, and the windows that hold what several do."""

from __future__ import annotations

from ....dialects.ranges import factor as factors
from ....dialects.ranges.algebra import size
from ....dialects.ranges.factor import Factor, joined, tiling
from ..verdict import Nothing, suppose
from .cases import Coordinates, Given, RangeLaw, axis, equal, registering
from .factor_laws import HALOS, any_factor, positive

LAWS: dict[str, RangeLaw] = {}
law = registering(LAWS)


def two(given: Given, at: Coordinates, kind: str = "blocks") -> tuple[Factor, Factor]:
    """Two factors, of which each block of the first is the second's span."""
    minor, place = any_factor(given, "b", at, kind), axis(given, "a", at)
    suppose(minor.width > 0)
    return Factor(place, minor.span), minor


@law(
    "joined",
    "Factors whose strides are the next one's spans are one factor on the product of their places.",
    "start(c·q + d) = c·s + d·t - before",
    HALOS,
)
def joined_is_both(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    major, minor = two(given, at, kind)
    c, d = at[major.axis], at[minor.axis]
    one = joined(given.number("n", 1), (major, minor))
    return (
        one is not None
        and one.size == major.size * minor.size
        and one.width == minor.width
        and one.start(c * minor.size + d) == (c * major.stride + minor.start(d))
    )


@law("split", "A factor that was joined splits into what it was joined from.", "joined(n, [f, g]).parts = [f, g]", HALOS)
def split_is_inverse(given: Given, kind: str) -> bool:
    made = two(given, {}, kind)
    suppose(1 not in (made[0].size, made[1].size))
    one = joined(given.number("n", 1), made)
    return one is not None and [(x.place, x.stride, x.before, x.after) for x in one.parts] == [
        (x.place, x.stride, x.before, x.after) for x in made
    ]


@law("joined tilings", "A tiling by two factors is one by the joined factor.", "tiling(n, [f, g]) = tiling(n, [f·g])")
def joined_tiles_alike(given: Given) -> bool:
    at: Coordinates = {}
    made = two(given, at)
    extent = given.number("rounds", 1) * made[0].span
    one = joined(extent, made)
    return one is not None and equal(given, tiling(extent, [one]), tiling(extent, made), at)


@law("fit", "Factors that fit tile the extent: the range has its size.", "fit(n, [f, g])  -->  |tiling(n, [f, g])| = n")
def fitting_factors_tile(given: Given) -> bool:
    major, minor = any_factor(given, "a", {}), any_factor(given, "b", {})
    extent = given.number("n", 1)
    suppose(factors.fit(extent, [major, minor]))
    return size(tiling(extent, [major, minor])) == extent


@law(
    "hull",
    "The hull of two factors covers the extent and holds what each of them holds.",
    "hull([f, g]) contains f and g",
    HALOS,
)
def hull_contains_both(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (one, c), extent = positive(given, at, kind), given.number("n", 1)
    other = Factor(one.place, one.stride, (given.integer("before'"), given.integer("after'")))
    found = factors.hull(extent, [one, other], given.number("most", 1))
    if found is None or found is one:
        raise Nothing
    inside = all(found.start(c) <= x.start(c) and x.start(c) + x.width <= found.start(c) + found.width for x in (one, other))
    return inside and found.end >= extent and found.begin <= 0


@law(
    "gaps",
    "Two windows of an iteration have a gap between them, or an element or an end in common.",
    "are_apart  iff  max(start) > min(end)",
)
def windows_are_apart(given: Given) -> bool:
    one, _ = positive(given, {}, "windows")
    other = Factor(one.place, one.stride, (given.integer("before'"), given.integer("after'")))
    suppose(other.width > 0)
    starts = [each.start(0) for each in (one, other)]
    ends = [each.start(0) + each.width for each in (one, other)]
    return factors.are_apart([one, other]) == (max(starts) > min(ends))


@law(
    "middle",
    "The tiling in the middle of two is as far from the one as from the other.",
    "|m - b1| and |m - b2| differ by at most 1",
)
def middle_is_between(given: Given) -> bool:
    place = axis(given, "a", {})
    stride, b1, b2 = given.number("stride", 1), given.integer("b1"), given.integer("b2")
    found = factors.middle(given.number("n", 1), [Factor(place, stride, (b, -b)) for b in (b1, b2)])
    return found is not None and found.is_tiling and abs(abs(found.before - b1) - abs(found.before - b2)) <= 1
