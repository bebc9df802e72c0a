"""Laws of ranges are proved on their code: true ones are, and false ones are refuted by ints for which the code is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from partita.dialects.ranges.algebra import (
    Extent,
    Pad,
    Product,
    Sub,
    Sum,
    Window,
    compose,
    halo,
    pad,
    product,
    reads,
    refine,
    size,
    sub,
    sum_,
)
from partita.dialects.ranges.denotation import slots
from partita.dialects.ranges.factor import Factor, joined
from partita.rewrites.proofs.of_ranges.cases import Coordinates, RangeLaw, axis, equal, ranges
from partita.rewrites.proofs.of_ranges.factor_laws import positive
from partita.rewrites.proofs.of_ranges.ranges import every_range_law
from partita.rewrites.proofs.of_ranges.window_laws import any_window, outputs
from partita.rewrites.proofs.symbolic.explore import Law, explore, replayed, satisfiable
from partita.rewrites.proofs.symbolic.given import Given
from partita.rewrites.proofs.verdict import suppose

LAWS = [pytest.param(each, id=each.name) for each in every_range_law()]


@pytest.mark.parametrize("law", LAWS)
def test_what_a_law_of_ranges_asks_for_can_hold_at_small_sizes(law: RangeLaw) -> None:
    assert all(satisfiable(predicate) for predicate in law.cases.values())


def numbers(given: Given, names: str, least: int = 0) -> list[Any]:
    return [given.number(name, least) for name in names.split()]


def powers_merge(given: Given) -> bool:
    p, q, r = (Extent(n) for n in numbers(given, "p q r"))
    return product(p, product(q, r)) is Extent(p.n * q.n * r.n)


def empty_sum(given: Given) -> bool:
    (r, s), empty = (Extent(n) for n in numbers(given, "r s")), Extent(0)
    return sum_(r, empty, s) is sum_(r, s)


def product_of_parts(given: Given) -> bool:
    n, m, k = numbers(given, "n m k", 1)
    suppose(m <= n)
    return size(product(sub(Extent(n), 0, m), Extent(k))) == m * k


def pads_of_lengths(given: Given) -> bool:
    n, a, b = numbers(given, "n a b")
    return size(pad(Extent(n), a, b)) == n + a + b


def doubled_stride(given: Given) -> bool:
    w, (begin, end) = any_window(given, "w"), outputs(given)
    return reads(compose(Window(Extent(1), 2, 1), w), begin, end)[0] == 2 * reads(w, begin, end)[0]


def moved_outputs(given: Given) -> bool:
    w, (begin, end), by = any_window(given, "w"), outputs(given), given.integer("by")
    moved = reads(w, begin + by, end + by)
    return moved == tuple(each + by * w.stride for each in reads(w, begin, end))


def halo_of_ones(given: Given) -> bool:
    c, i, k = numbers(given, "c i k", 1)
    return halo(Window(Extent(1), 1, k), i, c, c) == (0, k - 1)


def tail_is_last(given: Given) -> bool:
    n, m = numbers(given, "n m", 1)
    j = given.index("j", m)
    return slots(sum_(Extent(n), Extent(m)), {})[1](n + j) == (n + j, n + j)


def refines_itself(given: Given) -> bool:
    a, b = numbers(given, "a b", 2)
    return refine([a, b], [a, b]) == [a, b]


def span_of_joined(given: Given) -> bool:
    major, minor = axis(given, "a", {}), axis(given, "b", {})
    stride = given.number("stride", 1)
    both = [Factor(major, minor.size * stride), Factor(minor, stride)]
    one = joined(1, both)
    return one is not None and one.span == both[0].span


TRUE = [
    powers_merge,
    empty_sum,
    product_of_parts,
    pads_of_lengths,
    doubled_stride,
    moved_outputs,
    halo_of_ones,
    tail_is_last,
    refines_itself,
    span_of_joined,
]


@pytest.mark.parametrize("law", TRUE, ids=lambda law: law.__name__)
def test_another_true_law_is_proved(law: Law) -> None:
    assert explore(law).state == "proved", explore(law)
    assert satisfiable(law)


def sum_in_minor_place(given: Given) -> bool:
    """s * (r1 + r2) = s*r1 + s*r2"""
    at: Coordinates = {}
    s, r1, r2 = ranges(given, ["a", "n", "n"], at)
    return equal(given, Product((s, Sum((r1, r2)))), Sum((Product((s, r1)), Product((s, r2)))), at)


def merged_sum(given: Given) -> bool:
    """n + m = |n + m|: a sum records where it is cut."""
    n, m = numbers(given, "n m")
    return sum_(Extent(n), Extent(m)) is Extent(n + m)


def commuted_product(given: Given) -> bool:
    """a * n = n * a"""
    at: Coordinates = {}
    made = ranges(given, ["a", "n"], at)
    return equal(given, product(*made), product(*reversed(made)), at)


def part_without_offset(given: Given) -> bool:
    """r[a : n : s][b : m : t] = r[a + b : m : s·t]"""
    n, a, s, b, t = numbers(given, "n a s b t", 1)
    suppose(b + t < 4)
    return equal(given, Sub(sub(Extent(n), a, 4, s), b, 2, t), sub(Extent(n), a + b, 2, s * t), {})


def pad_dropped(given: Given) -> bool:
    """pad(pad(r, a, b), c, d) = pad(r, a + c, b)"""
    n, a, b, c, d = numbers(given, "n a b c d")
    return equal(given, Pad(Pad(Extent(n), a, b), c, d), Pad(Extent(n), a + c, b), {})


def composed_without_offset(given: Given) -> bool:
    """lo1 + lo2, without the stride"""
    first, second, (begin, end) = any_window(given, "x"), any_window(given, "y"), outputs(given)
    one = compose(first, second)
    return reads(Window(one.base, one.stride, one.width, 1, first.lo + second.lo), begin, end) == reads(
        first, *reads(second, begin, end)
    )


def composed_with_sign(given: Given) -> bool:
    """K1 + (K2 - 1)·s1, where s1 may be negative"""
    first, second = any_window(given, "x"), any_window(given, "y")
    return compose(first, second).width == first.width + (second.width - 1) * first.stride


def width_off_by_one(given: Given) -> bool:
    """k·d elements for one output"""
    w = any_window(given, "")
    begin, end = reads(w, 0, 1)
    return end - begin == w.kernel * w.dilation


def halo_of_any_block(given: Given) -> bool:
    """The halo is the same for every shard, whatever the blocks are."""
    w, (c, ci, i, j) = any_window(given, ""), numbers(given, "c ci i j", 1)
    return halo(w, i, c, ci) == halo(w, j, c, ci)


def window_of_cyclic(given: Given) -> bool:
    """win<1,1,1,0>(n * a) = n * a"""
    at: Coordinates = {}
    (r,) = ranges(given, ["n*a"], at)
    return equal(given, Window(r, 1, 1), r, at)


def covers_without_width(given: Given) -> bool:
    """Windows from the first to the last element hold every element."""
    (one, _), extent = positive(given, {}, "windows"), given.number("n", 1)
    element = given.index("e", extent)
    suppose(one.begin <= 0 and one.end >= extent)
    i = min((element + one.before) // one.stride, one.size - 1)
    return i >= 0 and one.start(i) <= element < one.start(i) + one.width


def every_factorisation_refines(given: Given) -> bool:
    """refine([a, b], [b, a]) is not None"""
    a, b = numbers(given, "a b", 2)
    return refine([a, b], [b, a]) is not None


FALSE = [
    sum_in_minor_place,
    merged_sum,
    commuted_product,
    part_without_offset,
    pad_dropped,
    composed_without_offset,
    composed_with_sign,
    width_off_by_one,
    halo_of_any_block,
    window_of_cyclic,
    covers_without_width,
    every_factorisation_refines,
]


@pytest.mark.parametrize("law", FALSE, ids=lambda law: law.__name__)
def test_a_false_law_is_refuted_with_sizes(law: Law) -> None:
    found = explore(law)
    assert found.state == "refuted", found
    given = {name: int(number) for name, number in (each.split(" = ") for each in found.how.split(", ") if "-" not in each)}
    assert given


def test_what_only_the_solver_says_is_no_counter_example() -> None:
    assert replayed(lambda given: given.number("n") >= 0, {"n": 3}) is None
    assert str(explore(lambda given: given.number("n") + 4 != 20)) == "refuted: n = 16"


def test_code_that_counts_one_by_one_proves_nothing() -> None:
    assert explore(lambda given: len(range(given.number("n"))) >= 0).state == "not proved"


def test_a_name_that_is_given_again_is_the_same_number() -> None:
    assert explore(lambda given: given.number("n") == given.number("n")).state == "proved"
    with pytest.raises(AssertionError, match="n is given twice"):
        explore(lambda given: given.number("n") <= given.number("n", 1))
