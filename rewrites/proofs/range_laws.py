"""The laws of the range algebra and of windows, as predicates on what the constructors of ranges and the functions on windows return.

Two ranges are equal if they have the same size, lie in the same extent, and each iteration has the same slots, with the same index
and position each: `slots`, the meaning of ranges, runs over numbers that stand for any as it does over ints.

    lambda: equal(given, Product((r, Product((s, t)))), product(product(r, s), t))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product as every_pair
from typing import Any, TypeAlias

from ...dialects.ranges.algebra import (
    Axis,
    Extent,
    Pad,
    Place,
    Product,
    Range,
    Sub,
    Sum,
    Window,
    compose,
    halo,
    pad,
    product,
    reads,
    size,
    space,
    sub,
    sum_,
    window,
)
from ...dialects.ranges.denotation import defined, interval, slots
from ...dialects.ranges.laws import whole, window_size
from .explore import Law

Given: TypeAlias = Any
"""What numbers come from: a path, or ints."""


@dataclass(frozen=True, slots=True)
class RangeLaw:
    """A law of ranges: its sentence, an equation or a picture of it, and a predicate for each structure that it is proved for."""

    name: str
    sentence: str
    picture: str
    cases: dict[str, Law]


LAWS: dict[str, RangeLaw] = {}


def law(name: str, sentence: str, picture: str = "", cases: Sequence[Any] = ((),)) -> Callable[[Callable[..., Any]], Law]:
    """Registers a predicate, for each of some structures."""

    def register(predicate: Callable[..., Any]) -> Law:
        bound = {" ".join(map(str, case)): _bound(predicate, case) for case in cases}
        LAWS[name] = RangeLaw(name, sentence, picture, bound)
        return predicate

    return register


def _bound(predicate: Callable[..., Any], case: tuple[Any, ...]) -> Law:
    return lambda given: predicate(given, *case)


# Ranges of every kind, and where they are read.

Coordinates: TypeAlias = dict[Place, int]
Maker: TypeAlias = Callable[[Given, str, Coordinates], "Range | None"]


def axis(given: Given, name: str, at: Coordinates) -> Axis | None:
    """A mesh axis of any size, and a coordinate along it."""
    made = Axis(name, given.number(f"size({name})", 1))
    coordinate = given.index(name, made.size)
    if coordinate is None:
        return None
    at[made] = coordinate
    return made


def extent(given: Given, name: str, at: Coordinates) -> Range:
    del at
    return Extent(given.number(f"n{name}"))


def block(given: Given, name: str, at: Coordinates) -> Range | None:
    made = axis(given, name, at)
    return made and Product((made, Extent(given.number(f"n{name}", 2))))


def cyclic(given: Given, name: str, at: Coordinates) -> Range | None:
    made = axis(given, name, at)
    return made and Product((Extent(given.number(f"n{name}", 2)), made))


def concatenation(given: Given, name: str, at: Coordinates) -> Range:
    del at
    return Sum((Extent(given.number(f"n{name}", 1)), Extent(given.number(f"m{name}", 1))))


def tail(given: Given, name: str, at: Coordinates) -> Range | None:
    made = axis(given, name, at)
    return made and Sum((made, Extent(given.number(f"n{name}", 1))))


def part(given: Given, name: str, at: Coordinates) -> Range | None:
    return _part(given, name, extent(given, name, at))


def padded_block(given: Given, name: str, at: Coordinates) -> Range | None:
    made = block(given, name, at)
    length = given.number(f"length({name})")
    return Sub(made, 0, length) if made is not None and length <= size(made) else None


def pad_of_axis(given: Given, name: str, at: Coordinates) -> Range | None:
    made = axis(given, name, at)
    return made and Pad(made, given.number(f"lo{name}"), given.number(f"hi{name}"))


def read(given: Given, name: str, at: Coordinates) -> Range | None:
    made = axis(given, name, at)
    return made and Window(made, *shape(given, name))


KINDS: dict[str, Maker] = {
    "n": extent,
    "a": axis,
    "a*n": block,
    "n*a": cyclic,
    "n + m": concatenation,
    "a + n": tail,
    "n[o : l : s]": part,
    "a*n pad l": padded_block,
    "pad(a, lo, hi)": pad_of_axis,
    "win<s,k,d,lo>(a)": read,
}
"""A range of each kind, of any sizes, at any coordinates."""
ONE = [(each,) for each in KINDS]
SIMPLE = ("n", "a")
TWO = list(dict.fromkeys([*every_pair(KINDS, SIMPLE), *every_pair(SIMPLE, KINDS)]))
THREE = [*((each, "a", "n") for each in KINDS), ("n", "n + m", "a"), ("a", "n", "n[o : l : s]")]


def _part(given: Given, name: str, base: Range) -> Range | None:
    """A part of a range, which does not reach beyond it."""
    offset, length, step = given.number(f"o{name}"), given.number(f"l{name}"), given.number(f"s{name}", 1)
    return Sub(base, offset, length, step) if length == 0 or offset + (length - 1) * step < size(base) else None


def shape(given: Given, name: str) -> tuple[int, int, int, int]:
    """Stride, kernel, dilation and padding of a window."""
    stride = given.integer(f"stride{name}")
    return stride, given.number(f"kernel{name}", 1), given.number(f"dilation{name}", 1), given.integer(f"lo{name}")


def ranges(given: Given, kinds: Sequence[str], at: Coordinates) -> list[Range] | None:
    """A range of each kind, on axes of its own."""
    made = [KINDS[kind](given, name, at) for kind, name in zip(kinds, "abc", strict=False)]
    return None if None in made else [each for each in made if each is not None]


def slot(given: Given, r: Range, at: Coordinates, name: str = "j") -> int | None:
    """Any slot of an iteration, made of one of each part, so that no quotient is left to find."""
    count, _ = slots(r, at)
    match r:
        case Product(parts):
            number = 0
            for order, each in enumerate(parts):
                digit = slot(given, each, at, f"{name}{order}")
                if digit is None:
                    return None
                number = number * slots(each, at)[0] + digit
            return number
        case Sum(parts):
            which = given.index(f"{name}'", len(parts))
            before = 0
            for order, each in enumerate(parts):
                if which == order:
                    digit = slot(given, each, at, f"{name}{order}")
                    return None if digit is None else before + digit
                before = before + slots(each, at)[0]
            return None
        case Sub(base):
            return slot(given, base, at, name)
        case _:
            return given.index(name, count)


def equal(given: Given, r: Range, s: Range, at: Coordinates) -> bool:
    """Whether two ranges are equal at these coordinates, and as a whole."""
    (count, left), (other, right) = slots(r, at), slots(s, at)
    if not (count == other and size(r) == size(s) and space(r) == space(s)):
        return False
    number = slot(given, r, at)
    return number is None or _known(left(number)) == _known(right(number))


def _known(point: tuple[int, int | None] | None) -> tuple[int, int | None] | None:
    return point and (point[0], defined(point[1]))


# Products and sums.


@law("product", "The constructor's product of two ranges is their product.", "product(r, s)  -->  r * s", TWO)
def product_means_product(given: Given, *kinds: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, kinds, at)
    return None if made is None else equal(given, Product(tuple(made)), product(*made), at)


@law("associative products", "Products may be nested in any way.", "(r * s) * t = r * (s * t)", THREE)
def products_associate(given: Given, *kinds: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, kinds, at)
    if made is None:
        return None
    r, s, t = made
    nested = Product((Product((r, s)), t))
    return equal(given, nested, product(r, product(s, t)), at) and product(product(r, s), t) is product(r, product(s, t))


@law("one", "1 is the unit of products.", "1 * r = r = r * 1", ONE)
def one_is_unit(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    if made is None:
        return None
    (r,) = made
    one = Extent(1)
    same = product(one, r) is product(r, one) is product(r)
    return same and equal(given, Product((one, r)), r, at) and equal(given, Product((r, one)), r, at)


@law("zero", "A product with 0 is empty.", "0 * r = 0 = r * 0", ONE)
def zero_is_zero(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    if made is None:
        return None
    (r,) = made
    empty = Extent(0)
    same = product(empty, r) is empty is product(r, empty)
    return same and all(slots(each, at)[0] == size(each) == 0 for each in (Product((empty, r)), Product((r, empty))))


@law("merged extents", "Neighbouring extents are one.", "p * q = n  iff  p·q = n")
def extents_merge(given: Given) -> bool:
    p, q = Extent(given.number("p")), Extent(given.number("q"))
    return equal(given, Product((p, q)), product(p, q), {}) and product(p, q) is Extent(p.n * q.n)


@law("sum", "The constructor's sum of two ranges is their sum.", "sum_(r, s)  -->  r + s", TWO)
def sum_means_sum(given: Given, *kinds: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, kinds, at)
    return None if made is None else equal(given, Sum(tuple(made)), sum_(*made), at)


@law("associative sums", "Sums may be nested in any way.", "(r + s) + t = r + (s + t)", THREE)
def sums_associate(given: Given, *kinds: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, kinds, at)
    if made is None:
        return None
    r, s, t = made
    return equal(given, Sum((Sum((r, s)), t)), sum_(r, sum_(s, t)), at) and sum_(sum_(r, s), t) is sum_(r, sum_(s, t))


@law("no term", "0 is the unit of sums.", "0 + r = r = r + 0", ONE)
def zero_is_unit(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    if made is None:
        return None
    (r,) = made
    empty = Extent(0)
    same = sum_(empty, r) is sum_(r, empty) is sum_(r)
    return same and equal(given, Sum((empty, r)), r, at) and equal(given, Sum((r, empty)), r, at)


@law("distribution", "A product with a minor range is one of each term.", "(r1 + r2) * s = r1*s + r2*s", THREE)
def products_distribute(given: Given, *kinds: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, kinds, at)
    if made is None:
        return None
    r1, r2, s = made
    return equal(given, Product((Sum((r1, r2)), s)), sum_(product(r1, s), product(r2, s)), at)


# Parts and pads.


@law("whole part", "A part that is all of a range is the range.", "r[0 : |r| : 1] = r", ONE)
def whole_part(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    if made is None:
        return None
    (r,) = made
    return sub(r, 0, size(r)) is r and equal(given, Sub(r, 0, size(r)), r, at)


@law("part of a part", "A part of a part is a part.", "r[a : n : s][b : m : t] = r[a + b·s : m : s·t]", [("n",), ("a",), ("a*n",)])
def part_of_a_part(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    inner = None if made is None else _part(given, "x", made[0])
    if not isinstance(inner, Sub):
        return None
    outer = _part(given, "y", inner)
    if not isinstance(outer, Sub):
        return None
    return equal(given, outer, sub(inner, outer.offset, outer.length, outer.step), at)


@law("no pad", "A pad of no elements is its base.", "pad(r, 0, 0) = r", ONE)
def no_pad(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    return None if made is None else pad(made[0], 0, 0) is made[0] and equal(given, Pad(made[0], 0, 0), made[0], at)


@law("pad of a pad", "Pads around pads are one.", "pad(pad(r, a, b), c, d) = pad(r, a + c, b + d)", ONE)
def pad_of_a_pad(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    if made is None:
        return None
    inner, lo, hi = Pad(made[0], given.number("a"), given.number("b")), given.number("c"), given.number("d")
    return equal(given, Pad(inner, lo, hi), pad(inner, lo, hi), at)


# Windows.

PLAIN = [("n",), ("a",), ("a*n",)]
"""Ranges whose iterations hold consecutive elements."""


def any_window(given: Given, name: str, base: Range | None = None) -> Window:
    return Window(Extent(1) if base is None else base, *shape(given, name))


def outputs(given: Given) -> tuple[int, int]:
    begin = given.integer("b")
    return begin, begin + given.number("count", 1)


@law("taps", "Outputs read from the first to the last of their taps, and nothing else.", "[b, e)  -->  [b·s - lo, (e-1)·s + (k-1)·d + 1 - lo)")
def taps(given: Given) -> bool | None:
    w, (begin, end) = any_window(given, ""), outputs(given)
    output, tap = given.index("o", end - begin), given.index("t", w.kernel)
    if output is None or tap is None:
        return None
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


@law("window of one", "A window of one element is its base, where iterations hold consecutive elements.", "win<1,1,1,0>(r) = r", PLAIN)
def window_of_one(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    if made is None or local_is_empty(made[0], at):
        return None
    (r,) = made
    return window(r, 1, 1) is r and equal(given, Window(r, 1, 1), r, at)


def local_is_empty(r: Range, at: Coordinates) -> bool:
    return slots(r, at)[0] == 0


@law("window of a window", "A window over a window is one window.", "win1(win2(r)) = (win1 ; win2)(r)", PLAIN[:2])
def window_of_a_window(given: Given, kind: str) -> bool | None:
    at: Coordinates = {}
    made = ranges(given, [kind], at)
    if made is None or local_is_empty(made[0], at):
        return None
    inner, outer = any_window(given, "x", made[0]), shape(given, "y")
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


@law("equal halos", "Where the blocks of inputs are those of outputs times the stride, all shards have the same halo.", "ci = c·s")
def halos_are_equal(given: Given) -> bool | None:
    w, outputs_each = any_window(given, ""), given.number("c", 1)
    if w.stride < 0:
        return None
    i, j, own = given.number("i"), given.number("j"), outputs_each * w.stride
    return halo(w, i, outputs_each, own) == halo(w, j, outputs_each, own)


@law("size", "A range has as many slots, over all iterations, as its size says.", "|r|", [(each,) for each in ("n", "a", "a*n", "n*a", "n + m", "a + n", "pad(a, lo, hi)", "win<s,k,d,lo>(a)")])
def size_counts_slots(given: Given, kind: str) -> bool | None:
    made = ranges(given, [kind], {})
    return None if made is None else slots(made[0], {})[0] == size(made[0])


@law("order", "An index of products and sums of plain terms is its position.", "r = 0, 1, ... |r| - 1", [(each,) for each in ("n", "a", "a*n", "n*a", "n + m", "a + n")])
def plain_terms_are_in_order(given: Given, kind: str) -> bool | None:
    made = ranges(given, [kind], {})
    number = None if made is None else slot(given, made[0], {})
    return None if made is None or number is None else whole(made[0]) and slots(made[0], {})[1](number) == (number, number)
