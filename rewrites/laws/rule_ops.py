"""The ops that a rule about programs may name: their only parameters are dims that the indices imply.

In a rule each array has its own indices, and an op is written without them:

    exp(x), x + y       each element by itself; an index that one of the arrays has, the result has
    dot(x, y)           the sum of the products over all indices that nothing around it needs
    reduce_max(x)       the fold over all indices that nothing around it needs
"""

from __future__ import annotations

from enum import Enum
from functools import cache

from ...dialects.definitions.operators import COMPARISONS
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Apply, Definition, Expr, Fold, Param, Read

PRODUCT = "dot_general"
ALIASES = {"dot": PRODUCT}
"""The ops that rules call by another name."""
SAME = {"add_any": "add"}
"""Ops that mean the same as another op."""
COMMUTES = frozenset({"add", "mul", "max", "min", "and", "or", "xor", PRODUCT})
TELLS = frozenset({*COMPARISONS, "is_finite"})
"""The ops whose results are truth values."""


class IndexForm(Enum):
    """How an op treats the indices of its operands."""

    EACH = "elementwise"
    FOLD = "a fold"
    PRODUCT = "a sum of products"


@cache
def form(kind: str) -> IndexForm | None:
    """How an op treats indices, read off its definition; None if a rule cannot name the op."""
    if kind == PRODUCT:
        return IndexForm.PRODUCT
    definition = definitions.get(kind)
    if definition is None or len(definition.targets) != 1 or definition.front or definition.ravel:
        return None
    match definition.body:
        case Apply(args=args) if not definition.at and all(_reads_all(each, definition) for each in args):
            return IndexForm.EACH
        case Fold(body=Read(), upto=()) if fold_param(kind):
            return IndexForm.FOLD
        case _:
            return None


def arity(kind: str) -> int | None:
    """The number of arrays that an op takes; None if it takes any number."""
    operands = definitions[kind].operands
    return None if any(each.variadic for each in operands) else len(operands)


def _reads_all(term: Expr, definition: Definition) -> bool:
    """Whether an expression reads arrays only at the indices of the result."""
    if isinstance(term, Apply):
        return all(_reads_all(each, definition) for each in term.args)
    return isinstance(term, Read) and term.dims == definition.targets[0].dims


@cache
def fold_param(kind: str) -> str | None:
    """The parameter that lists the dims which an op folds; None unless it is the op's only parameter."""
    definition = definitions[kind]
    sources = [each.source for each in definition.at]
    plain = len(definition.operands) == 1 and len(sources) == 1 and isinstance(sources[0], Param)
    return sources[0].name if plain and isinstance(sources[0], Param) and not sources[0].steps else None
