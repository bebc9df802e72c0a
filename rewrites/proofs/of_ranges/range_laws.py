"""The laws of products, sums, parts and pads, as predicates on what the constructors of ranges return."""

from __future__ import annotations

from ....dialects.ranges.algebra import Extent, Pad, Product, Sub, Sum, pad, product, size, sub, sum_
from ....dialects.ranges.denotation import slots
from ....dialects.ranges.laws import whole
from .cases import ONE, THREE, TWO, Coordinates, Given, RangeLaw, equal, part_of, ranges, registering, slot

LAWS: dict[str, RangeLaw] = {}
law = registering(LAWS)


@law("product", "The constructor's product of two ranges is their product.", "product(r, s)  -->  r * s", TWO)
def product_means_product(given: Given, *kinds: str) -> bool:
    at: Coordinates = {}
    made = ranges(given, kinds, at)
    return equal(given, Product(tuple(made)), product(*made), at)


@law("associative products", "Products may be nested in any way.", "(r * s) * t = r * (s * t)", THREE)
def products_associate(given: Given, *kinds: str) -> bool:
    at: Coordinates = {}
    r, s, t = ranges(given, kinds, at)
    nested = Product((Product((r, s)), t))
    return equal(given, nested, product(r, product(s, t)), at) and product(product(r, s), t) is product(r, product(s, t))


@law("one", "1 is the unit of products.", "1 * r = r = r * 1", ONE)
def one_is_unit(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    one = Extent(1)
    same = product(one, r) is product(r, one) is product(r)
    return same and equal(given, Product((one, r) if given.index("side", 2) == 0 else (r, one)), r, at)


@law("zero", "A product with 0 is empty.", "0 * r = 0 = r * 0", ONE)
def zero_is_zero(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    empty = Extent(0)
    same = product(empty, r) is empty is product(r, empty)
    return same and all(slots(each, at)[0] == size(each) == 0 for each in (Product((empty, r)), Product((r, empty))))


@law("merged extents", "Neighbouring extents are one.", "p * q = n  iff  p·q = n")
def extents_merge(given: Given) -> bool:
    p, q = Extent(given.number("p")), Extent(given.number("q"))
    return equal(given, Product((p, q)), product(p, q), {}) and product(p, q) is Extent(p.n * q.n)


@law("sum", "The constructor's sum of two ranges is their sum.", "sum_(r, s)  -->  r + s", TWO)
def sum_means_sum(given: Given, *kinds: str) -> bool:
    at: Coordinates = {}
    made = ranges(given, kinds, at)
    return equal(given, Sum(tuple(made)), sum_(*made), at)


@law("associative sums", "Sums may be nested in any way.", "(r + s) + t = r + (s + t)", THREE)
def sums_associate(given: Given, *kinds: str) -> bool:
    at: Coordinates = {}
    r, s, t = ranges(given, kinds, at)
    return equal(given, Sum((Sum((r, s)), t)), sum_(r, sum_(s, t)), at) and sum_(sum_(r, s), t) is sum_(r, sum_(s, t))


@law("no term", "0 is the unit of sums.", "0 + r = r = r + 0", ONE)
def zero_is_unit(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    empty = Extent(0)
    same = sum_(empty, r) is sum_(r, empty) is sum_(r)
    return same and equal(given, Sum((empty, r) if given.index("side", 2) == 0 else (r, empty)), r, at)


@law("distribution", "A product with a minor range is one of each term.", "(r1 + r2) * s = r1*s + r2*s", THREE)
def products_distribute(given: Given, *kinds: str) -> bool:
    at: Coordinates = {}
    r1, r2, s = ranges(given, kinds, at)
    return equal(given, Product((Sum((r1, r2)), s)), sum_(product(r1, s), product(r2, s)), at)


@law("whole part", "A part that is all of a range is the range.", "r[0 : |r| : 1] = r", ONE)
def whole_part(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    return sub(r, 0, size(r)) is r and equal(given, Sub(r, 0, size(r)), r, at)


@law(
    "part of a part",
    "A part of a part is a part.",
    "r[a : n : s][b : m : t] = r[a + b·s : m : s·t]",
    [("n",), ("a",), ("a*n",)],
)
def part_of_a_part(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    inner = part_of(given, "x", r)
    outer = part_of(given, "y", inner)
    return equal(given, outer, sub(inner, outer.offset, outer.length, outer.step), at)


@law("no pad", "A pad of no elements is its base.", "pad(r, 0, 0) = r", ONE)
def no_pad(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    return pad(r, 0, 0) is r and equal(given, Pad(r, 0, 0), r, at)


@law("pad of a pad", "Pads around pads are one.", "pad(pad(r, a, b), c, d) = pad(r, a + c, b + d)", ONE)
def pad_of_a_pad(given: Given, kind: str) -> bool:
    at: Coordinates = {}
    (r,) = ranges(given, [kind], at)
    inner, lo, hi = Pad(r, given.number("lo"), given.number("hi")), given.number("lo'"), given.number("hi'")
    return equal(given, Pad(inner, lo, hi), pad(inner, lo, hi), at)


@law(
    "size",
    "A range has as many slots, over all iterations, as its size says.",
    "|r|",
    [(each,) for each in ("n", "a", "a*n", "n*a", "n + m", "a + n", "pad(a, lo, hi)", "win<s,k,d,lo>(a)")],
)
def size_counts_slots(given: Given, kind: str) -> bool:
    (r,) = ranges(given, [kind], {})
    return slots(r, {})[0] == size(r)


@law(
    "order",
    "An index of products and sums of plain terms is its position.",
    "r = 0, 1, ... |r| - 1",
    [(each,) for each in ("n", "a", "a*n", "n*a", "n + m", "a + n")],
)
def plain_terms_are_in_order(given: Given, kind: str) -> bool:
    (r,) = ranges(given, [kind], {})
    number = slot(given, r, {})
    return whole(r) and slots(r, {})[1](number) == (number, number)
