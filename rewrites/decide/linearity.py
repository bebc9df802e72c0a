"""Decides through which ops a pending sum may move, by rewriting their definitions with the laws of linearity.

The body of a definition is read as a term in which each pending operand is `sum(r, x)`. The laws move that sum outwards,
innermost first. The op is linear in those operands exactly if the sum arrives at the root and no sum remains inside. An operand
that is known to be zero also counts as a sum, of zeros.

    mul: lhs[i] * rhs[i], lhs pending   -->   sum(r, x) * y   -->   sum(r, x * y)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import TypeAlias, cast

from ...dialects.definitions.syntax_tree import Apply, Definition, Expr, Fold, Guard, Otherwise, Read, Reading
from ...dialects.ground.dtypes import divides, widens
from ...dialects.ground.monoids import MONOIDS
from ..rules.compile import Environment
from ..rules.rule_files import rules

Term: TypeAlias = "str | tuple[Term, ...]"
OVER = "r"
"""The range of the pending sums. The definition's own folds run over other ranges."""

Dtypes: TypeAlias = tuple[str, str]
"""The dtypes of an op's pending operands and of its result."""
EXACT: Dtypes = ("float64", "float64")
"""Real numbers, which casts keep and which divide exactly."""

_known: dict[tuple[str, tuple[int, int], frozenset[int], frozenset[int], Dtypes], bool] = {}


def linear_in(definition: Definition, pending: frozenset[int], zeros: frozenset[int], dtypes: Dtypes = EXACT) -> bool:
    """Whether the op is jointly linear in the operands at `pending`, given that those at `zeros` are zero.

    An op whose result has another dtype casts what it computes.
    """
    key = (definition.name, definition.arity, pending, zeros, dtypes)
    found = _known.get(key)
    if found is None:
        before, after = dtypes
        facts: Environment = {"widening": _fact(widens(before, after)), "field": _fact(divides(before))}
        body = _Reader(definition, pending, zeros).term(definition.body)
        term = _turned(body if before == after else ("cast", body), facts)
        found = _known[key] = bool(pending) and _is_sum(term) and not any(map(_is_sum, _subterms(term)))
    return found


def terms_beside(
    definition: Definition, pending: frozenset[int], zeros: frozenset[int], others: frozenset[int], dtypes: Dtypes = EXACT
) -> frozenset[int] | None:
    """The operands among `others` that the op adds to its pending ones; None if it uses any of them in another way.

    By the law `once` such a term may count on one device only, and is then a pending sum like the others.

        add: lhs[i] + rhs[i], rhs pending   -->   {lhs}
    """
    terms = {at for at in others if linear_in(definition, frozenset({at}), zeros | pending | others - {at}, dtypes)}
    return frozenset(terms) if linear_in(definition, pending | terms, zeros, dtypes) else None


def _fact(holds: bool) -> Callable[[object], bool]:
    return lambda _: holds


class _Reader:
    """Reads a definition's body as a term."""

    def __init__(self, definition: Definition, pending: frozenset[int], zeros: frozenset[int]) -> None:
        self.definition = definition
        self.pending = pending
        self.zeros = zeros

    def term(self, expr: Expr) -> Term:
        match expr:
            case Read():
                return reduce(lambda left, right: ("add", left, right), self.reads(expr))
            case Apply(function, args):
                return self.call(self.definition.name if function == "@" else function, args)
            case Fold(monoid, _, body) if monoid in MONOIDS and MONOIDS[monoid].linear:
                return ("sum", "k", self.term(body))
            case Fold(monoid, _, body):
                return (monoid, self.term(body))
            case Guard(_, start, _):
                return ("where", *self.reads(start, self.pending))
            case Otherwise(body, default):
                return ("select", "where", self.term(body), self.term(default))
            case _:
                return "free"

    def reads(self, read: Reading, sums: frozenset[int] | None = None) -> list[Term]:
        """The operands of a read, those at `sums` as sums. In a condition, a zero operand is not a sum: it is just false."""
        sums = self.pending | self.zeros if sums is None else sums
        return [("sum", OVER, f"x{at}") if at in sums else f"x{at}" for at in self.definition.positions(read.array)]

    def call(self, function: str, args: tuple[Expr, ...]) -> Term:
        terms = [term for arg in args for term in (self.reads(arg) if isinstance(arg, Read) else [self.term(arg)])]
        if function == "select":
            which, *cases = terms
            if 0 not in self.pending:
                which = "where"
            return reduce(lambda left, right: ("select", which, left, right), cases)
        if function == "either":
            return reduce(lambda left, right: ("either", left, right), terms)
        return (function, *terms)


def _turned(term: Term, facts: Environment) -> Term:
    """The term with its sums moved outwards as far as the laws allow."""
    if not isinstance(term, tuple):
        return term
    made = tuple(_turned(part, facts) for part in term)
    if _is_sum(made) or not any(map(_is_sum, made)):
        return made
    found = rules("linearity").rewrite_root(made, facts)
    return made if found is None else cast(Term, found[0])


def _is_sum(term: Term) -> bool:
    return isinstance(term, tuple) and term[:2] == ("sum", OVER)


def _subterms(term: Term) -> Iterator[Term]:
    """All terms below the root."""
    if isinstance(term, tuple):
        for part in term[1:]:
            yield part
            yield from _subterms(part)


def forget() -> None:
    """Forgets all answers, for tests that count how often a law fires."""
    _known.clear()
