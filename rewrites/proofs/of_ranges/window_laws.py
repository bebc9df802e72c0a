"""The laws of windows: what they read, how they compose, and the halo of a shard."""

from __future__ import annotations

from ....dialects.ranges.algebra import Extent, Range, Window, compose, halo, reads, window
from ....dialects.ranges.denotation import interval, slots
from ....dialects.ranges.laws import window_size
from ..verdict import suppose
from .cases import Coordinates, Given, RangeLaw, equal, ranges, registering, shape

LAWS: dict[str, RangeLaw] = {}
law = registering(LAWS)

PLAIN = [("n",), ("a",), ("a*n",)]
"""Ranges whose iterations hold consecutive elements."""


def any_window(given: Given, name: str, base: Range | None = None) -> Window:
    return Window(Extent(1) if base is None else base, *shape(given, name))


def outputs(given: Given) -> tuple[int, int]:
    begin = given.integer("b")
    return begin, begin + given.number("count", 1)


@law(
    "taps",
    "Outputs read from the first to the last of their taps, and nothing else.",
    "[b, e)  -->  [b·s - lo, (e-1)·s + (k-1)·d + 1 - lo)",
)
def taps(given: Given) -> bool:
    w, (begin, end) = any_window(given, ""), outputs(given)
    output, tap = given.index("o", end - begin), given.index("t", w.kernel)
    first, last = reads(w, begin, end)

    def read(o: int, t: int) -> int:
        return o * w.stride - w.lo + t * w.dilation

    ends = (begin, end - 1) if w.stride > 0 else (end - 1, begin)
    attained = first == read(ends[0], 0) and last - 1 == read(ends[1], w.kernel - 1)
    return attained and first <= read(begin + output, tap) < last


@law("width", "A window reads so many elements for so many outputs.", "|win<s,k,d,lo>(n)| = (n-1)·|s| + (k-1)·d + 1")
def width(given: Given) -> bool:
    w, count = any_window(given, ""), given.number("n", 1)
    begin, end = reads(w, 0, count)
    return window_size(w, count) == end - begin


@law(
    "window of one",
    "A window of one element is its base, where iterations hold consecutive elements.",
    "win<1,1,1,0>(r) = r",
    PLAIN,
)
def window_of_one(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    suppose(holds_any(r, at))
    return window(r, 1, 1) is r and equal(given, Window(r, 1, 1), r, at)


def holds_any(r: Range, at: Coordinates) -> bool:
    return slots(r, at)[0] != 0


@law("window of a window", "A window over a window is one window.", "win1(win2(r)) = (win1 ; win2)(r)", PLAIN[:2])
def window_of_a_window(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    suppose(holds_any(r, at))
    inner, outer = any_window(given, "x", r), shape(given, "y")
    one = window(inner, *outer)
    return isinstance(one, Window) and interval(Window(inner, *outer), at) == interval(one, at)


@law("composition", "What the composed window reads, the first reads for what the second reads.", "win1 ; win2")
def composition(given: Given) -> bool:
    first, second, (begin, end) = any_window(given, "x"), any_window(given, "y"), outputs(given)
    return reads(compose(first, second), begin, end) == reads(first, *reads(second, begin, end))


@law("associative windows", "Windows compose in any grouping.", "(win1 ; win2) ; win3 = win1 ; (win2 ; win3)")
def windows_associate(given: Given) -> bool:
    first, second, third = (any_window(given, name) for name in "xyz")
    left, right = compose(compose(first, second), third), compose(first, compose(second, third))
    return (left.stride, left.width, left.lo) == (right.stride, right.width, right.lo)


@law("composed width", "The width of a composition follows from both widths.", "K = K1 + (K2 - 1)·|s1|")
def composed_width(given: Given) -> bool:
    first, second = any_window(given, "x"), any_window(given, "y")
    return compose(first, second).width == first.width + (second.width - 1) * abs(first.stride)


@law("halo", "A shard's block with its halo is what its outputs read.", "[left | own | right)")
def halo_is_what_a_shard_reads(given: Given) -> bool:
    w, shard, outputs_each, own = any_window(given, ""), given.number("i"), given.number("c", 1), given.number("ci", 1)
    left, right = halo(w, shard, outputs_each, own)
    read = reads(w, shard * outputs_each, (shard + 1) * outputs_each)
    return (shard * own - left, (shard + 1) * own + right) == read


@law(
    "equal halos",
    "Where the blocks of inputs are those of outputs times the stride, all shards have the same halo.",
    "ci = c·s",
)
def halos_are_equal(given: Given) -> bool:
    w, outputs_each = any_window(given, ""), given.number("c", 1)
    suppose(w.stride > 0)
    i, j, own = given.number("i"), given.number("j"), outputs_each * w.stride
    return halo(w, i, outputs_each, own) == halo(w, j, outputs_each, own)
