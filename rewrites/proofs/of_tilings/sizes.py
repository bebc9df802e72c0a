"""Sizes that know of which sizes they are made, so that code which takes ints runs once for all of them.

A size is an int, by which the code decides which way it goes, and a polynomial, which is what it computes. Each decision is
noted, with what must hold of the sizes for it.

    n = p * m;   n * 3 - n   -->   2·m·p          n > p   -->   true, if m·p > p
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

Monomial: TypeAlias = tuple[str, ...]
Polynomial: TypeAlias = Mapping[Monomial, int]
Decision: TypeAlias = tuple["SymbolicSize", str, "SymbolicSize", bool]
"""Two sizes, how they were compared, and what came out."""

noted: list[Decision] = []
"""The decisions since the list was last cleared."""


class SymbolicSize(int):
    """An int that stands for a polynomial of sizes."""

    terms: Polynomial

    @staticmethod
    def of(value: int, terms: Polynomial) -> SymbolicSize:
        made = SymbolicSize(value)
        made.terms = {each: by for each, by in terms.items() if by}
        return made

    def __add__(self, other: int) -> SymbolicSize:
        return SymbolicSize.of(int(self) + int(other), _sum(terms_of(self), terms_of(other)))

    def __mul__(self, other: int) -> SymbolicSize:
        x, y = terms_of(self), terms_of(other)
        every = ({tuple(sorted((*p, *q))): m * n} for p, m in x.items() for q, n in y.items())
        return SymbolicSize.of(int(self) * int(other), _sum(*every))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> SymbolicSize:
        return self * -1

    def __sub__(self, other: int) -> SymbolicSize:
        return self + size(other) * -1

    def __rsub__(self, other: int) -> SymbolicSize:
        return self * -1 + other

    def __floordiv__(self, other: int) -> SymbolicSize:
        """The quotient by a product of sizes, which must divide each term."""
        ((by, unit),) = terms_of(other).items()
        found = {_without(each, by): count // unit for each, count in self.terms.items()}
        quotient = SymbolicSize.of(int(self) // int(other), found)
        assert (quotient * other).terms == self.terms, f"{other} does not divide {self} for all sizes"
        return quotient

    def __mod__(self, other: int) -> int:
        return int(self - self // other * other)

    def __eq__(self, other: object) -> bool:
        return _decided(self, other, "=", int.__eq__) if isinstance(other, int) else False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: int) -> bool:
        return _decided(self, other, "<", int.__lt__)

    def __le__(self, other: int) -> bool:
        return _decided(self, other, "<=", int.__le__)

    def __gt__(self, other: int) -> bool:
        return not self <= other

    def __ge__(self, other: int) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        # No table finds it under the int, by comparing the two.
        return hash(frozenset(self.terms.items()))


def size(number: int) -> SymbolicSize:
    return SymbolicSize.of(number, terms_of(number))


def terms_of(number: int) -> Polynomial:
    return number.terms if isinstance(number, SymbolicSize) else {(): int(number)} if number else {}


def value(number: int, named: Callable[[str], Any]) -> Any:
    """The polynomial, of what the names stand for."""
    found: Any = 0
    for names, by in terms_of(number).items():
        term = by
        for name in names:
            term = named(name) if isinstance(term, int) and term == 1 else term * named(name)
        found = term if isinstance(found, int) and found == 0 else found + term
    return found


def _sum(*every: Polynomial) -> Polynomial:
    found = defaultdict[Monomial, int](int)
    for terms in every:
        for each, by in terms.items():
            found[each] += by
    return found


def _without(names: Iterable[str], others: Iterable[str]) -> Monomial:
    left = list(names)
    for other in others:
        if other in left:
            left.remove(other)
    return tuple(left)


def _decided(x: int, y: int, how: str, compare: Callable[[int, int], bool]) -> bool:
    found = compare(int(x), int(y))
    if set(_sum(terms_of(x), terms_of(size(y) * -1)).values()) - {0}:
        noted.append((size(x), how, size(y), found))
    return found


def is_sure(decision: Decision) -> bool:
    """Whether a decision comes out like that for all sizes that are 2 at least: all terms of the difference have one sign."""
    x, how, y, outcome = decision
    beyond = {name: SymbolicSize.of(2, {(name,): 1, (): 2}) for each in (x, y) for term in each.terms for name in term}
    terms = terms_of(size(0) + value(y - x, beyond.__getitem__))
    constant, others = terms.get((), 0), [by for each, by in terms.items() if each]
    is_more = constant >= 0 and all(by >= 0 for by in others)
    is_less = constant <= 0 and all(by <= 0 for by in others)
    if how == "<=":
        return is_more if outcome else is_less and constant < 0
    if how == "<":
        return is_more and constant > 0 if outcome else is_less
    return (is_more or is_less) and constant != 0 and not outcome
