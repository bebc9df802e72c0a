"""Runs in which comparisons come out as for sizes that are given, so that code runs once. Each comparison is noted.

n = p * m;   n > p   -->   true for p = 2, m = 3;   noted: p < p * m
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from ..values import Number
from .polynomial import Monomial, Polynomial, constant, variable
from .symbol import UNREACHED, Symbol, Undecided, polynomial_of


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a polynomial is 0, or is 0 or more, and what came out."""

    asked: Polynomial
    is_equation: bool
    outcome: bool

    @property
    def is_sure(self) -> bool:
        """Whether it comes out like that for all sizes that are 2 at least: no term can make it come out otherwise."""
        below, above = (constant(-1) - self.asked, self.asked - constant(1))
        if self.is_equation:
            return not self.outcome and (_is_natural(below) or _is_natural(above))
        return _is_natural(self.asked if self.outcome else below)

    def fact(self, named: Callable[[str], Any]) -> Any:
        """What has to hold of what the names stand for."""
        above, below = ({each: n * sign for each, n in self.asked.terms.items() if n * sign > 0} for sign in (1, -1))
        left, right = (_of(Polynomial(terms), named) for terms in (below, above))
        if self.is_equation:
            return left == right if self.outcome else left != right
        return left <= right if self.outcome else right < left


@dataclass(eq=False)
class Sample:
    """A run with given sizes."""

    sizes: Mapping[str, int]
    noted: list[Decision] = field(default_factory=list[Decision])

    def __call__(self, name: str) -> Number:
        return Symbol(variable(name), self)

    def at_least_zero(self, asked: Polynomial) -> bool:
        return self.decided(asked, False, asked.at(self.sizes) >= 0)

    def is_zero(self, asked: Polynomial) -> bool:
        return self.decided(asked, True, asked.at(self.sizes) == 0)

    def decided(self, asked: Polynomial, is_equation: bool, outcome: bool) -> bool:
        if asked.value is None and abs(asked.terms.get((), 0)) < UNREACHED:
            self.noted.append(Decision(asked, is_equation, outcome))
        return outcome

    def digits(self, number: Polynomial, block: Polynomial) -> tuple[Symbol, Symbol]:
        """The quotient by what divides each term, and 0."""
        quotient = number.over(block)
        assert quotient * block == number, f"{block} does not divide {number} for all sizes"
        return Symbol(quotient, self), Symbol(constant(0), self)

    def value(self, number: Polynomial) -> int:
        raise Undecided(f"{number} has to be known")

    def number(self, number: Number) -> int:
        """A number, for these sizes."""
        return polynomial_of(number).at(self.sizes)


def term(number: Number, named: Callable[[str], Any]) -> Any:
    """A number, of what the names of its sizes stand for."""
    return _of(polynomial_of(number), named)


def _of(polynomial: Polynomial, named: Callable[[str], Any]) -> Any:
    def product(each: Monomial, n: int) -> Any:
        factors: list[Any] = [*([n] if n != 1 or not each else []), *map(named, each)]
        return reduce(lambda x, y: x * y, factors)

    terms = [product(each, n) for each, n in polynomial.terms.items()]
    return reduce(lambda x, y: x + y, terms) if terms else 0


def _is_natural(each: Polynomial) -> bool:
    for name in each.variables:
        each = each.replaced(name, variable(name) + constant(2))
    return each.is_natural
