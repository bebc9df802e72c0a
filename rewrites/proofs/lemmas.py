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


LEMMAS: dict[str, Callable[[], Steps]] = {
    "digits": digits,
    "one term": one_term,
    "congruence": congruence,
    "sums": sums,
    "regrouping": regrouping,
}
