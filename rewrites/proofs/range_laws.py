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
TWO = list(every_pair(KINDS, KINDS))
SIMPLE = ("n", "a", "n + m")
THREE = [*every_pair(SIMPLE, SIMPLE, SIMPLE), *((each, "n", "n") for each in KINDS), *(("n", each, "n") for each in KINDS)]


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
