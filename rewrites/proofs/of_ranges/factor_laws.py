"""The laws of placed factors: what an iteration holds, and how factors are joined, split and tiled.

An iteration i holds the elements [i·stride - before, (i + 1)·stride + after) of a range, and by that each law is said.
"""

from __future__ import annotations

from ....dialects.ranges import factor as factors
from ....dialects.ranges.denotation import interval, slots
from ....dialects.ranges.factor import Factor, tiling
from ....dialects.ranges.windows import windows_of
from ..verdict import Nothing, suppose
from .cases import Coordinates, Given, RangeLaw, axis, registering

LAWS: dict[str, RangeLaw] = {}
law = registering(LAWS)
HALOS = [("blocks",), ("windows",)]
MIRRORED = [*HALOS, ("mirrored windows",)]
"""With windows of a negative stride: later iterations hold earlier elements."""


def any_factor(given: Given, name: str, at: Coordinates, kind: str = "blocks") -> Factor:
    """A factor of any size and stride, and a coordinate on its place."""
    place = axis(given, name, at)
    stride = given.number(f"stride{name}", 1)
    if kind == "blocks":
        return Factor(place, stride)
    halo = given.integer(f"before{name}"), given.integer(f"after{name}")
    return Factor(place, -stride if kind == "mirrored windows" else stride, halo)


def positive(given: Given, at: Coordinates, kind: str) -> tuple[Factor, int]:
    """A factor that holds something, and the coordinate."""
    made = any_factor(given, "a", at, kind)
    suppose(made.width > 0)
    return made, at[made.axis]


@law("tiled blocks", "Each iteration of a tiling holds the blocks of its factor, in rounds.", "n, data at s  -->  q * data * s")
def tiling_of_blocks(given: Given) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, "blocks")
    rounds = given.number("rounds", 1)
    extent = rounds * one.span
    turn, j = given.index("turn", rounds), given.index("j", one.stride)
    count, slot = slots(tiling(extent, [one]), at)
    position = turn * one.span + c * one.stride + j
    return count == rounds * one.stride and slot(turn * one.stride + j) == (position, position)


@law(
    "padded blocks",
    "Of a padded tiling an iteration holds the part of its block that is in the extent.",
    "n, data at s  -->  data*s pad n",
)
def tiling_of_padded_blocks(given: Given) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, "blocks")
    extent, j = given.number("n", 1), given.index("j", one.stride)
    suppose(extent < one.span)
    _, slot = slots(tiling(extent, [one]), at)
    position = c * one.stride + j
    begin, end = one.held(c, extent)
    return slot(j) == ((position, position) if begin <= position < end else None)


@law(
    "tiled windows",
    "Each iteration of a range of windows reads its factor's window.",
    "n, data at s, b before, a after  -->  win<s,b + s + a,1,b>(data) of n",
)
def tiling_of_windows(given: Given) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, "windows")
    extent = given.number("n", 1)
    windows = windows_of(tiling(extent, [one]))
    return windows is not None and interval(windows, at) == (one.start(c), one.start(c) + one.width)


@law("windows over", "A factor with a halo is found again in its tiling.", "windows_over(tiling(n, [f])) = f")
def windows_over_is_inverse(given: Given) -> bool:
    one, _ = positive(given, {}, "windows")
    back = factors.windows_over(tiling(given.number("n", 1), [one]))
    return back is not None and (back.place, back.stride, back.before, back.after) == (
        one.place,
        one.stride,
        one.before,
        one.after,
    )


@law(
    "held",
    "What an iteration holds is the part of its window that is in the extent.",
    "[start, start + width) and [0, n)",
    MIRRORED,
)
def held_is_the_window_in_the_extent(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, kind)
    extent = given.number("n", 1)
    element = given.index("e", extent)
    begin, end = one.held(c, extent)
    return (begin <= element < end) == (one.start(c) <= element < one.start(c) + one.width)


@law(
    "begin and end",
    "No iteration holds an element before the begin, or behind the end.",
    "begin <= start(i), start(i) + width <= end",
    MIRRORED,
)
def begin_and_end(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, kind)
    return one.begin <= one.start(c) and one.start(c) + one.width <= one.end


@law(
    "covers",
    "Factors that cover an extent hold each of its elements on some iteration.",
    "covers  -->  e in window(i), for i = (e + before) / stride or the last",
    HALOS,
)
def covers_each_element(given: Given, kind: str) -> bool:
    one, _ = positive(given, {}, kind)
    extent = given.number("n", 1)
    element = given.index("e", extent)
    suppose(one.covers(extent))
    i = min((element + one.before) // one.stride, one.size - 1)
    return i >= 0 and one.start(i) <= element < one.start(i) + one.width


@law(
    "overhang",
    "A factor overhangs if an iteration holds positions outside of the extent, and only then.",
    "overhangs  iff  start(i) < 0 or start(i) + width > n",
    MIRRORED,
)
def overhangs_outside(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, kind)
    extent = given.number("n", 1)

    def outside(i: int) -> bool:
        return one.start(i) < 0 or one.start(i) + one.width > extent

    return outside(0) or outside(one.size - 1) if one.overhangs(extent) else not outside(c)


@law(
    "nothing left out",
    "If the first and the last iteration hold an element, each one does.",
    "not leaves_out  -->  window(i) is not empty",
    MIRRORED,
)
def nothing_is_left_out(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, kind)
    extent = given.number("n", 1)
    suppose(not one.leaves_out(extent))
    begin, end = one.held(c, extent)
    return begin < end


@law("tilings", "The window of a tiling begins where the one before it ends.", "start(i) + width = start(i + 1)", HALOS)
def tilings_have_no_gaps(given: Given, kind: str) -> bool:
    (one, _), i = positive(given, {}, kind), given.number("i")
    return one.is_tiling == (one.start(i) + one.width == one.start(i + 1))


@law(
    "own rows",
    "The own rows of an iteration are those before the next one's window.",
    "own = min(start(i + 1), start(i) + width) - start(i)",
    HALOS,
)
def own_rows(given: Given, kind: str) -> bool:
    (one, _), i = positive(given, {}, kind), given.number("i")
    return one.own == min(one.start(i + 1), one.start(i) + one.width) - one.start(i)


@law(
    "outward",
    "A factor of an index is one of its dim, whose elements are `minor` apart.",
    "i in f  iff  i·minor + r in f.outward(minor)",
    MIRRORED,
)
def outward_holds_the_same(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    one, c = positive(given, at, kind)
    minor = given.number("minor", 1)
    rest, i = given.index("r", minor), given.integer("i")
    there, element = one.outward(minor), i * minor + rest
    return (one.start(c) <= i < one.start(c) + one.width) == (there.start(c) <= element < there.start(c) + there.width)


@law("inward", "Inward is the inverse of outward.", "f.outward(m).inward(m) = f", MIRRORED)
def inward_is_inverse(given: Given, kind: str) -> bool:
    (one, _), minor = positive(given, {}, kind), given.number("minor", 1)
    back = one.outward(minor).inward(minor)
    return back is not None and (back.place, back.stride, back.halo) == (one.place, one.stride, one.halo)


@law("even", "Equal blocks cover the extent, and exactly if it divides.", "n  -->  p * ceil(n / p)", [("exact",), ("padded",)])
def even_blocks(given: Given, kind: str) -> bool:
    (one, _), extent = positive(given, {}, "blocks"), given.number("n", 1)
    if (even := one.even(extent, kind == "padded")) is None:
        raise Nothing
    return even.span >= extent > even.span - even.size if kind == "padded" else even.span == extent


@law("padded extent", "The padded extent is the extent, or the span if that is longer.", "max(n, p·s)")
def padded_extent(given: Given) -> bool:
    (one, _), extent = positive(given, {}, "blocks"), given.number("n", 1)
    whole = factors.padded(extent, [one])
    return whole == max(extent, one.span) and factors.is_padded(extent, [one]) == (one.span > extent)
