"""The lemmas that proofs use, proved by the solver: by induction over the number of terms, a step of which it checks.

one term      sum of n + 1 terms = sum of n terms + f(n); if it is f(w) or 0 for n terms, it is for n + 1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .solver import answer, need, z3

Steps: TypeAlias = dict[str, list[Any]]
"""The steps of a proof: facts that cannot hold at once."""


def lemmas() -> dict[str, bool]:
    """Whether the solver proves each step of each lemma. Raises Error if Z3 is not installed."""
    need()
    every = {name: make() for name, make in LEMMAS.items()}
    return {f"{name}: {step}": answer(facts)[0] == "unsat" for name, steps in every.items() for step, facts in steps.items()}


def _numbers(names: str) -> list[Any]:
    return [z3.Int(name) for name in names.split()]


def _functions(names: str, arguments: int = 1) -> list[Any]:
    sorts = [*[z3.IntSort()] * arguments, z3.RealSort()]
    return [z3.Function(name, *sorts) for name in names.split()]


def digits() -> Steps:
    """A quotient and a remainder exist, and c * m <= i < c * m + m says which."""
    i, m, c, n, q, r = _numbers("i m c n q r")
    split = [m > 0, i == q * m + r, r >= 0, r < m]
    # A product grows with its factor: of two whole numbers, m times the larger one is larger by m at least.
    grows = [z3.Implies(x < y, x * m + m <= y * m) for x, y in ((q, c), (c, q), (q, z3.IntVal(0)), (n, q))]
    return {
        "they exist": [m > 0, z3.Not(z3.And(i == i / m * m + i % m, i % m >= 0, i % m < m))],
        "a product grows": [m > 0, c >= q + 1, (c - q - 1) * m < 0],
        "they are unique": [*split, *grows, c * m <= i, i < c * m + m, q != c],
        "they are in range": [*split, *grows, i >= 0, i < n * m, z3.Or(q < 0, q >= n)],
    }


def one_term() -> Steps:
    """A sum with one term that is not zero, or none."""
    n, w = _numbers("n w")
    f, total = _functions("f total")

    def only(count: Any) -> Any:
        return total(count) == z3.If(z3.And(w >= 0, w < count), f(w), 0)

    grown = [n >= 0, total(n + 1) == total(n) + f(n)]
    return {
        "none": [total(0) == 0, z3.Not(only(0))],
        "one more": [*grown, only(n), z3.Or(n == w, f(n) == 0), z3.Not(only(n + 1))],
    }


def congruence() -> Steps:
    """Folds of equal terms are equal, with any monoid."""
    (n,) = _numbers("n")
    f, g, x, y = _functions("f g x y")
    combine = z3.Function("combine", *[z3.RealSort()] * 3)
    grown = [x(n + 1) == combine(x(n), f(n)), y(n + 1) == combine(y(n), g(n))]
    unit = z3.Real("unit")
    return {
        "none": [x(0) == unit, y(0) == unit, x(0) != y(0)],
        "one more": [*grown, x(n) == y(n), f(n) == g(n), x(n + 1) != y(n + 1)],
    }


def sums() -> Steps:
    """A sum of sums is the sum of the two sums."""
    (n,) = _numbers("n")
    f, g, x, y, both = _functions("f g x y both")
    zero = [each(0) == 0 for each in (x, y, both)]
    grown = [x(n + 1) == x(n) + f(n), y(n + 1) == y(n) + g(n), both(n + 1) == both(n) + (f(n) + g(n))]
    return {
        "none": [*zero, both(0) != x(0) + y(0)],
        "one more": [*grown, both(n) == x(n) + y(n), both(n + 1) != x(n + 1) + y(n + 1)],
    }


def regrouping() -> Steps:
    """A fold of rows is that of whole blocks, and then of the rows of the last block: by induction over both."""
    c, m, r = _numbers("c m r")
    row, prefix, blocks = _functions("row prefix blocks")
    (block,) = _functions("block", 2)
    combine, unit = z3.Function("combine", *[z3.RealSort()] * 3), z3.Real("unit")

    def at(rest: Any) -> Any:
        return prefix(c * m + rest) == combine(blocks(c), block(c, rest))

    grown = [
        prefix(c * m + (r + 1)) == combine(prefix(c * m + r), row(c * m + r)),
        block(c, r + 1) == combine(block(c, r), row(c * m + r)),
    ]
    x, y, z = blocks(c), block(c, r), row(c * m + r)
    associates = combine(combine(x, y), z) == combine(x, combine(y, z))
    neutral = combine(blocks(c), unit) == blocks(c)
    return {
        "no block": [prefix(0) == unit, blocks(0) == unit, prefix(0) != blocks(0)],
        "no row of a block": [
            block(c, 0) == unit,
            neutral,
            prefix(c * m) == blocks(c),
            z3.Not(z3.substitute(at(r), (r, z3.IntVal(0)))),
        ],
        "one more row": [*grown, associates, at(r), z3.Not(at(r + 1))],
        "one more block": [blocks(c + 1) == combine(blocks(c), block(c, m)), at(m), prefix((c + 1) * m) != blocks(c + 1)],
    }


# Long: one lemma, whose steps share their numbers.
def renumbering() -> Steps:
    """A sum over windows is one over rows, if each row g is the own row, number(g) and column(g), of one window.

    f(c, i) is the sum over g of g's element where (c, i) is its own row, and of zeros. Sums change places, and one term is left
    for each g.
    """
    c, i, g, count, width, rows = _numbers("c i g count width rows")
    number, column = (z3.Function(name, z3.IntSort(), z3.IntSort()) for name in ("number", "column"))
    row = z3.Function("row", z3.IntSort(), z3.IntSort(), z3.IntSort())
    (f,), (element,) = _functions("f", 2), _functions("element")
    total, by_rows, terms = _functions("total by_rows terms")
    over_rows, over_columns, over_both = z3.Reals("over_rows over_columns over_both")

    def is_own(g: Any) -> Any:
        inside = z3.And(number(g) >= 0, number(g) < count, column(g) >= 0, column(g) < width)
        owned = z3.And(inside, row(number(g), column(g)) == g, f(number(g), column(g)) == element(g))
        return z3.Implies(z3.And(g >= 0, g < rows), owned)

    def part(c: Any, i: Any, g: Any) -> Any:
        return z3.If(z3.And(number(g) == c, column(g) == i), element(g), 0)

    known_of_g = [g >= 0, g < rows, is_own(g)]
    at = row(c, i)
    has_row = z3.And(at >= 0, at < rows)
    known = z3.Or(f(c, i) == 0, z3.And(has_row, number(at) == c, column(at) == i))
    alone = over_rows == z3.If(has_row, part(c, i, at), 0)
    of_column = z3.If(z3.And(column(g) >= 0, column(g) < width), part(c, column(g), g), 0)
    of_number = z3.If(z3.And(number(g) >= 0, number(g) < count), element(g), 0)
    return {
        "a window's row is no other one": [*known_of_g, g != at, part(c, i, g) != 0],
        "a term is the sum over all rows": [is_own(at), known, alone, f(c, i) != over_rows],
        "sums change places: none": [total(0) == 0, by_rows(0) == 0, total(0) != by_rows(0)],
        "sums change places: one more": [
            total(c + 1) == total(c) + terms(c),
            by_rows(c + 1) == by_rows(c) + terms(c),
            total(c) == by_rows(c),
            total(c + 1) != by_rows(c + 1),
        ],
        "a row has no other column": [i != column(g), part(c, i, g) != 0],
        "a row has no other number": [
            g >= 0,
            g < rows,
            is_own(g),
            over_columns == of_column,
            c != number(g),
            over_columns != 0,
        ],
        "a row counts once": [g >= 0, g < rows, is_own(g), over_both == of_number, over_both != element(g)],
    }


# Long: one lemma, whose steps share their numbers.
def order() -> Steps:
    """At place i of an array in order is v, if at most i elements are less than v, and more than i at most v.

    There is one: a new element is put where as many are less than it as before, and those behind it move on. It is decided by
    how many elements are less than a number, and as many of its own are.
    """
    i, n = _numbers("i n")
    v, w, new = z3.Reals("v w new")
    less, most, other_less, other_most = (
        z3.Function(name, z3.RealSort(), z3.IntSort()) for name in ("less", "most", "other_less", "other_most")
    )
    total = z3.Function("total", z3.IntSort(), z3.IntSort())

    def one(holds: Any) -> Any:
        return z3.If(holds, 1, 0)

    def is_at(v: Any, place: Any) -> Any:
        return z3.And(less(v) <= place, place < most(v))

    def is_then_at(v: Any, place: Any) -> Any:
        return z3.And(less(v) + one(new < v) <= place, place < most(v) + one(new <= v))

    def grow(v: Any, w: Any) -> list[Any]:
        each = [(less, most), (other_less, other_most)]
        apart = [z3.Implies(x < y, most(x) <= less(y)) for less, most in each for x, y in ((v, w), (w, v))]
        return [*apart, *(less(x) <= most(x) for less, most in each for x in (v, w))]

    same = [less(v) == other_less(v), less(w) == other_less(w)]
    minimum = z3.If(n < less(w), n, less(w))
    return {
        "less are at most": [v < w, most(v) <= less(w), most(v) + one(new <= v) > less(w) + one(new < w)],
        "as many are less": [less(v) <= most(v), less(v) + one(new < v) > most(v) + one(new <= v)],
        "it exists: before the new one": [*grow(v, new), is_at(v, i), i < less(new), z3.Not(is_then_at(v, i))],
        "it exists: the new one": [*grow(v, new), z3.Not(is_then_at(new, less(new)))],
        "it exists: behind the new one": [*grow(v, new), is_at(v, i), i >= less(new), z3.Not(is_then_at(v, i + 1))],
        "counts decide it": [*grow(v, w), *same, is_at(v, i), other_less(w) <= i, i < other_most(w), v != w],
        "as many of its own are less": [*grow(v, w), is_at(v, i), (v < w) != (i < less(w))],
        "these are the first ones: none": [less(w) >= 0, total(0) == 0, z3.substitute(total(n) != minimum, (n, z3.IntVal(0)))],
        "these are the first ones: one more": [
            less(w) >= 0,
            total(n + 1) == total(n) + one(n < less(w)),
            total(n) == minimum,
            z3.substitute(total(n) != minimum, (n, n + 1)),
        ],
        "no more are less than there are": [less(v) <= n, less(v) + one(new < v) > n + 1],
    }


LEMMAS: dict[str, Callable[[], Steps]] = {
    "digits": digits,
    "one term": one_term,
    "congruence": congruence,
    "sums": sums,
    "regrouping": regrouping,
    "renumbering": renumbering,
    "order": order,
}
