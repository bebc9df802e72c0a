"""Interprets a side of a rule as a term of any kind: of ops, of arrays, or of indices alone.

An index is summed as soon as nothing around needs it. In `dot(x, dot(y, z))`, with the result at i, j:

    x[i, k], y[k, l], z[l, j]   -->   the inner product sums over l, since x and the result have k, j; the outer one over k
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Protocol, TypeVar

from ..rules.rule import RuleApply, RuleNumber, Symbol, Term, Variable, subterms
from .rule_ops import ALIASES, IndexForm, form

T = TypeVar("T")
Indices = tuple[int, ...]


class NoTerm(Exception):
    """Raised for a term that has no meaning at these indices, so that the rule does not apply."""


class TermMaker(Protocol[T]):
    """How to make terms of one kind."""

    def ids(self, term: T) -> Indices:
        """Returns the indices of a term."""
        ...

    def number(self, value: int) -> T:
        """Makes a scalar."""
        ...

    def each(self, kind: str, args: Sequence[T]) -> T:
        """Makes an elementwise op."""
        ...

    def fold(self, kind: str, arg: T, keep: Collection[int]) -> T:
        """Makes the fold over all indices except those to keep."""
        ...

    def product(self, left: T, right: T, keep: Collection[int]) -> T:
        """Makes the sum of products over all indices except those to keep."""
        ...


class IndexMaker:
    """Computes only the indices of terms, and records those that each sum is over."""

    def __init__(self) -> None:
        self.sums: list[frozenset[int]] = []

    def ids(self, term: Indices) -> Indices:
        return term

    def number(self, value: int) -> Indices:
        del value
        return ()

    def each(self, kind: str, args: Sequence[Indices]) -> Indices:
        del kind
        return tuple(dict.fromkeys(index for arg in args for index in arg))

    def fold(self, kind: str, arg: Indices, keep: Collection[int]) -> Indices:
        del kind
        self.sums.append(frozenset(arg).difference(keep))
        return tuple(index for index in arg if index in keep)

    def product(self, left: Indices, right: Indices, keep: Collection[int]) -> Indices:
        summed(left, right, keep)
        return self.fold("", self.each("", (left, right)), keep)


class Costs(IndexMaker):
    """Computes the indices of terms, and adds up their flops and the elements that their ops make."""

    def __init__(self, extents: Mapping[int, int]) -> None:
        super().__init__()
        self.extents, self.flops, self.elements = extents, 0, 0

    def points(self, ids: Indices) -> int:
        return prod(self.extents[index] for index in ids)

    def each(self, kind: str, args: Sequence[Indices]) -> Indices:
        out = super().each(kind, args)
        self.flops, self.elements = self.flops + self.points(out), self.elements + self.points(out)
        return out

    def fold(self, kind: str, arg: Indices, keep: Collection[int]) -> Indices:
        out = super().fold(kind, arg, keep)
        self.flops, self.elements = self.flops + self.points(arg), self.elements + self.points(out)
        return out

    def product(self, left: Indices, right: Indices, keep: Collection[int]) -> Indices:
        summed(left, right, keep)
        every = IndexMaker().each("", (left, right))
        self.flops += self.points(every)
        return self.fold("", every, keep)


def summed(left: Indices, right: Indices, keep: Collection[int]) -> list[int]:
    """The indices that a product sums over. Raises NoTerm for an index that only one side has, unless it is kept."""
    if set(left).symmetric_difference(right).difference(keep):
        raise NoTerm
    return [index for index in left if index in right and index not in keep]


def make_term(term: Term, bound: Mapping[str, T], keep: Collection[int], maker: TermMaker[T]) -> T:
    """Makes a term, given those of its variables and the indices needed around it. Raises NoTerm if it has no meaning."""
    match term:
        case Variable(name):
            return bound[name]
        case RuleNumber(value):
            return maker.number(value)
        case Symbol(name):
            raise NoTerm(name)
        case RuleApply(head, args):
            kind = ALIASES.get(head, head)
            match form(kind), args:
                case IndexForm.PRODUCT, (left, right):
                    mine, other = (_indices(each, bound, maker) for each in (left, right))
                    lhs = make_term(left, bound, {*keep, *other}, maker)
                    return maker.product(lhs, make_term(right, bound, {*keep, *mine}, maker), keep)
                case IndexForm.FOLD, (arg,):
                    return maker.fold(kind, make_term(arg, bound, keep, maker), keep)
                case _:
                    return maker.each(kind, [make_term(arg, bound, keep, maker) for arg in args])


def _indices(term: Term, bound: Mapping[str, T], maker: TermMaker[T]) -> set[int]:
    """The indices of all variables in a term."""
    variables = {each.name for each in subterms(term) if isinstance(each, Variable)}
    return {index for name in variables for index in maker.ids(bound[name])}
