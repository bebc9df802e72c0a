"""The worlds of tilings: the solver's, in which one index is p blocks of m, and that of ints, in which folds are what they are.

The solver's world rewrites folds as these lemmas say, which are proved below.

    regrouping      the fold over p * m rows is that of the folds of p blocks of m rows
    interchange     folds over two indices may be done in either order
    sums            the sum of f + g is the sum of f and the sum of g, and that of -f is less the sum of f
    idempotent      the fold of x . g, over one term at least, is x . the fold of g, if x . x = x
    digits          the number q * m + r with 0 <= r < m has the digits q and r
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any
from zlib import crc32

import numpy as np

from ....dialects.ground.monoids import MONOIDS
from ..lemmas import Steps
from ..solver import answer, z3
from ..terms import Terms
from ..values import Number
from ..world import Ints
from .definitions import ROWS

BOOLEAN = {each.name: MONOIDS[each.on_bool].name for each in MONOIDS.values() if each.on_bool}
"""The monoids that are others on booleans."""


@dataclass(eq=False)
class Blocks(Terms):
    """The solver's world, where an index of `count * block` values has so many blocks."""

    count: Any = None
    block: Any = None
    split: dict[tuple[int, int], tuple[Number, Number]] = field(default_factory=dict[tuple[int, int], tuple[Number, Number]])
    kept: list[Any] = field(default_factory=list[Any])
    """The terms whose numbers `split` has, which the solver must not give to others."""

    def joined(self, digits: Sequence[tuple[Number, Number]]) -> Number:
        found: Number = 0
        for digit, size in digits:
            found = found * size + digit
        for at in range(1, len(digits)):
            first, last = _horner(digits[:at]), _horner(digits[at:])
            block = reduce(lambda x, y: x * y, (size for _, size in digits[at:]))
            self.split[self.key(found, block)] = first, last
        return found

    def key(self, index: Number, block: Number) -> tuple[int, int]:
        terms = [_plain(each) for each in (index, block)]
        self.kept += terms
        return terms[0].get_id(), terms[1].get_id()

    def digits(self, index: Number, block: Number) -> tuple[Number, Number]:
        if isinstance(block, int) and block == 1:
            return index, 0
        return self.split.get(self.key(index, block)) or super().digits(_plain(index), block)

    def fold(self, monoid: str, size: Number, body: Callable[[Number], Number]) -> Number:
        if self.is_placed(size):
            count, block = self.count, self.block
            return self.fold(monoid, count, lambda c: self.fold(monoid, block, lambda row: body(c * block + row)))
        size = _plain(size)
        if isinstance(self.block, int) and z3.is_add(size) and z3.eq(size.arg(0), z3.IntVal(1)):
            # A block of one row is the last row of the fold.
            before = _plain(size - 1)
            return self.combine(monoid, self.fold(monoid, before, body), body(before))

        def plain(at: Number) -> Number:
            return _plain(body(at))

        number = z3.Int(f"number{len(self.bound)}")
        self.bound.append(number)
        term = plain(number)
        self.bound.pop()
        kind = term.decl().kind() if z3.is_app(term) else None
        if monoid == "add" and kind == z3.Z3_OP_ADD:
            return z3.Sum([self.fold(monoid, size, _child(plain, at)) for at in range(term.num_args())])
        if monoid == "add" and kind == z3.Z3_OP_MUL and z3.is_int_value(term.arg(0)):
            return term.arg(0) * self.fold(monoid, size, lambda at: z3.Product(plain(at).children()[1:]))
        if monoid in self.functions and kind is not None and z3.eq(term.decl(), self.functions[monoid]):
            for at in (0, 1) if MONOIDS[monoid].idempotent else ():
                if not _has(term.arg(at), number):
                    return self.combine(monoid, term.arg(at), self.fold(monoid, size, _child(plain, 1 - at)))
        return super().fold(monoid, size, plain)

    def is_placed(self, size: Number) -> bool:
        if isinstance(size, int) or isinstance(self.block, int):
            return False
        return z3.eq(z3.simplify(size, som=True), z3.simplify(self.count * self.block, som=True))


def _plain(term: Number) -> Number:
    """A sum of products, so that equal terms are the same."""
    return z3.simplify(z3.IntVal(term) if isinstance(term, int) else term, som=True)


def _horner(digits: Sequence[tuple[Number, Number]]) -> Number:
    return reduce(lambda found, each: found * each[1] + each[0], digits, 0)


def _child(body: Callable[[Number], Number], at: int) -> Callable[[Number], Number]:
    return lambda number: body(number).arg(at)


def _has(term: Any, number: Any) -> bool:
    return z3.eq(term, number) or any(_has(each, number) for each in term.children())


@dataclass(eq=False, slots=True)
class Exact(Ints):
    """Python's ints. Functions of which nothing is known give small numbers that differ where their arguments do."""

    guess: Callable[[str, tuple[Number, ...]], Number] = lambda name, arguments: crc32(f"{name} {arguments}".encode()) % 19 - 9

    def joined(self, digits: Sequence[tuple[Number, Number]]) -> Number:
        return _horner(digits)

    def fold(self, monoid: str, size: Number, body: Callable[[Number], Number]) -> Number:
        terms = [body(number) for number in range(size)]
        if monoid == ROWS:
            return tuple(terms)
        return reduce(lambda x, y: self.combine(monoid, x, y), terms) if terms else self.unit(monoid)

    def combine(self, monoid: str, x: Number, y: Number) -> Number:
        return MONOIDS[monoid].function(np.asarray(x), np.asarray(y)).item()

    def unit(self, monoid: str) -> Number:
        return MONOIDS[monoid].unit(np.dtype(np.int64)).item()


def interchange() -> Steps:
    """By induction over the rows: one more row is folded into each of the folds of columns."""
    n = z3.Int("n")
    rows, columns, next_row = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("rows", "columns", "row"))
    combine, unit = z3.Function("combine", *[z3.RealSort()] * 3), z3.Real("unit")
    # The fold of f . g is the fold of f and that of g, if the order does not matter: `pairs`.
    grown = [rows(n + 1) == combine(rows(n), next_row(n)), columns(n + 1) == combine(columns(n), next_row(n))]
    return {
        "no row": [rows(0) == unit, columns(0) == unit, rows(0) != columns(0)],
        "one more row": [*grown, rows(n) == columns(n), rows(n + 1) != columns(n + 1)],
    }


def pairs() -> Steps:
    """The fold of f . g is the fold of f and that of g, for a monoid whose order does not matter."""
    n = z3.Int("n")
    f, g, x, y, both = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("f", "g", "x", "y", "both"))
    combine, unit = z3.Function("combine", *[z3.RealSort()] * 3), z3.Real("unit")
    (p, q, r, s) = x(n), y(n), f(n), g(n)
    grown = [x(n + 1) == combine(p, r), y(n + 1) == combine(q, s), both(n + 1) == combine(both(n), combine(r, s))]
    swaps = combine(combine(p, q), combine(r, s)) == combine(combine(p, r), combine(q, s))
    return {
        "none": [x(0) == unit, y(0) == unit, both(0) == unit, combine(unit, unit) == unit, both(0) != combine(x(0), y(0))],
        "one more": [*grown, swaps, both(n) == combine(p, q), both(n + 1) != combine(x(n + 1), y(n + 1))],
    }


def idempotent() -> Steps:
    """The fold of x . g is x . the fold of g, over one term at least."""
    n, x = z3.Int("n"), z3.Real("x")
    g, some, whole = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("g", "some", "whole"))
    combine = z3.Function("combine", *[z3.RealSort()] * 3)
    grown = [some(n + 1) == combine(some(n), g(n)), whole(n + 1) == combine(whole(n), combine(x, g(n)))]
    y, z = some(n), g(n)
    moves = [combine(combine(x, y), combine(x, z)) == combine(combine(x, x), combine(y, z)), combine(x, x) == x]
    return {
        "one": [some(1) == g(0), whole(1) == combine(x, g(0)), whole(1) != combine(x, some(1))],
        "one more": [*grown, *moves, whole(n) == combine(x, some(n)), whole(n + 1) != combine(x, some(n + 1))],
    }


def scaled() -> Steps:
    """The sum of a * f is a * the sum of f."""
    n, a = z3.Int("n"), z3.Real("a")
    f, some, whole = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("f", "some", "whole"))
    grown = [some(n + 1) == some(n) + f(n), whole(n + 1) == whole(n) + a * f(n)]
    return {
        "none": [some(0) == 0, whole(0) == 0, whole(0) != a * some(0)],
        "one more": [*grown, whole(n) == a * some(n), whole(n + 1) != a * some(n + 1)],
    }


def booleans() -> Steps:
    """Of booleans, all are true if the least one is, and any is if the greatest one is."""
    x, y = z3.Bools("x y")
    p, q = z3.If(x, 1, 0), z3.If(y, 1, 0)
    return {
        "all": [z3.If(z3.And(x, y), 1, 0) != z3.If(p < q, p, q)],
        "any": [z3.If(z3.Or(x, y), 1, 0) != z3.If(p < q, q, p)],
    }


def lemmas() -> dict[str, bool]:
    """Whether the solver proves each step of each lemma that tilings need beyond those of laws."""
    every = {each.__name__: each() for each in (pairs, interchange, idempotent, scaled, booleans)}
    return {f"{name}: {step}": answer(facts)[0] == "unsat" for name, steps in every.items() for step, facts in steps.items()}
