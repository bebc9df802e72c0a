"""Rewrite rules: two terms and a condition, as immutable trees.

A rule says that its right side may replace its left side, for all values of its variables that meet the condition. `parse`
reads these trees, `compile` compiles them, and `partita rules` prints them.

    beta: slice(L, build(L, x)) => x       Rule("beta", Apply("slice", ...), Variable("x"))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ...dialects.ground.errors import Location

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, which matches anything: a value, a mesh axis, a dim, a stride, a layout.

    The same name matches the same thing.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol, which matches only itself, such as the name of a monoid."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class RuleNumber:
    """An integer, which matches only itself."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class RuleApply:
    """In a term, an operation on terms; in a condition, a function of the values of the variables."""

    head: str
    args: tuple[Term, ...]
    at: Location | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.head == "neg":
            return f"-{_bracketed(self.args[0])}"
        if self.head in INFIX:
            return f" {INFIX[self.head]} ".join(_bracketed(term) for term in self.args)
        return f"{self.head}({', '.join(map(str, self.args))})"


Term: TypeAlias = Variable | Symbol | RuleNumber | RuleApply


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison, `left = right` or `left != right`. An `=` whose left side is an unbound variable binds it."""

    operator: str
    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class Holds:
    """A named predicate, looked up in the environment; `negated` for `not`."""

    name: str
    args: tuple[Term, ...]
    negated: bool = False

    def __str__(self) -> str:
        return f"{'not ' if self.negated else ''}{self.name}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class All:
    """Holds if every part does. Parts are tried from left to right, so a part may use variables that an earlier part bound."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Holds if some part does."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


Condition: TypeAlias = Compare | Holds | All | AnyOf


@dataclass(frozen=True, slots=True)
class Rule:
    """A named law: `name: left => right where condition`, and its line in the file."""

    name: str
    left: RuleApply
    right: Term
    where: Condition | None = None
    line: int = 0

    def __str__(self) -> str:
        law = f"{self.name}: {self.left} => {self.right}"
        return f"{law} where {self.where}" if self.where is not None else law


def subterms(term: Term) -> Iterator[Term]:
    """Yields the term and all terms in it, outermost first."""
    yield term
    if isinstance(term, RuleApply):
        for argument in term.args:
            yield from subterms(argument)


def terms_of(condition: Condition) -> Iterator[Term]:
    """Yields the terms in a condition, from left to right."""
    match condition:
        case Compare(_, left, right):
            yield from (left, right)
        case Holds(_, args, _):
            yield from args
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from terms_of(part)


def _bracketed(term: Term) -> str:
    return f"({term})" if isinstance(term, RuleApply) and (term.head in INFIX or term.head == "neg") else str(term)
