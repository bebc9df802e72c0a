"""Polynomials over natural numbers: what sizes, strides and coordinates become when code runs over them.

(c·n + j) divided by n   -->   c, and j is left
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

Monomial: TypeAlias = tuple[str, ...]
"""The variables of a product, sorted; a variable that occurs twice is a square."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of products of variables, each with its coefficient, which is not 0."""

    terms: Mapping[Monomial, int]

    def __add__(self, other: Polynomial) -> Polynomial:
        return total([self, other])

    def __sub__(self, other: Polynomial) -> Polynomial:
        return total([self, other.times(-1)])

    def __mul__(self, other: Polynomial) -> Polynomial:
        made: dict[Monomial, int] = {}
        for x, a in self.terms.items():
            for y, b in other.terms.items():
                both = tuple(sorted((*x, *y)))
                made[both] = made.get(both, 0) + a * b
        return _without_zeros(made)

    def times(self, number: int) -> Polynomial:
        return _without_zeros({each: number * n for each, n in self.terms.items()})

    @property
    def value(self) -> int | None:
        """The number, if it has no variable."""
        return self.terms.get((), 0) if not any(self.terms) else None

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(name for each in self.terms for name in each)

    @property
    def degree(self) -> int:
        return max(map(len, self.terms), default=0)

    @property
    def is_natural(self) -> bool:
        """Whether no coefficient is negative, so that it is 0 or more for all natural numbers."""
        return all(n > 0 for n in self.terms.values())

    def at(self, point: Mapping[str, int]) -> int:
        """Its value where each variable is given."""
        return sum(n * prod(map(point.__getitem__, each)) for each, n in self.terms.items())

    def common(self) -> Monomial:
        """The variables that each of its products has."""
        first, *others = self.terms or [()]
        shared = list(first)
        for each in others:
            left = list(each)
            shared = [name for name in shared if name in left and not left.remove(name)]
        return tuple(shared)

    def over(self, divisor: Polynomial) -> Polynomial:
        """The largest polynomial whose product with a divisor is, term by term, a part of this one."""
        if len(divisor.terms) != 1:
            return self.over_sum(divisor)
        ((by, n),) = divisor.terms.items()
        found = {_rest(each, by): a // n for each, a in self.terms.items() if a % n == 0}
        return _without_zeros({each: a for each, a in found.items() if each is not None})

    def over_sum(self, divisor: Polynomial) -> Polynomial:
        """A quotient by a divisor of several terms: of terms that begin with the divisor's first one, while there are any."""
        lead = max(divisor.terms, key=lambda each: (len(each), each))
        quotient, rest = constant(0), self
        while found := rest.over(Polynomial({lead: divisor.terms[lead]})).terms:
            term = Polynomial({each: found[each] for each in [max(found, key=lambda each: (len(each), each))]})
            quotient, rest = quotient + term, rest - term * divisor
        return quotient

    def solved(self, name: str) -> Polynomial | None:
        """What a variable is if this is 0; None if it occurs in a product, or not once."""
        n = self.terms.get((name,), 0)
        if abs(n) != 1 or sum(name in each for each in self.terms) > 1:
            return None
        return (self - variable(name).times(n)).times(-n)

    def replaced(self, name: str, by: Polynomial) -> Polynomial:
        if name not in self.variables:
            return self
        made: list[Polynomial] = []
        for each, n in self.terms.items():
            term = Polynomial({tuple(other for other in each if other != name): n})
            for _ in range(each.count(name)):
                term = term * by
            made.append(term)
        return total(made)

    def __str__(self) -> str:
        texts = [_text(each, n) for each, n in sorted(self.terms.items(), key=lambda item: (-len(item[0]), item[0]))]
        return " + ".join(texts).replace("+ -", "- ") or "0"


def constant(number: int) -> Polynomial:
    return Polynomial({(): number} if number else {})


def variable(name: str) -> Polynomial:
    return Polynomial({(name,): 1})


def total(each: Iterable[Polynomial]) -> Polynomial:
    made: dict[Monomial, int] = {}
    for one in each:
        for monomial, n in one.terms.items():
            made[monomial] = made.get(monomial, 0) + n
    return _without_zeros(made)


def _without_zeros(terms: Mapping[Monomial, int]) -> Polynomial:
    return Polynomial({each: n for each, n in terms.items() if n})


def _rest(product: Monomial, by: Monomial) -> Monomial | None:
    left = list(product)
    for name in by:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)


def _text(product: Monomial, n: int) -> str:
    return (
        str(n) if not product else "·".join([*([] if n == 1 else ["-"] if n == -1 else [str(n)]), *product]).replace("-·", "-")
    )
