"""Linearity: through which ops a pending sum may move.

`f(sum x) = sum f(x)` holds when `f` is linear in `x`, all other operands being the same on every device. It follows from the
definition's body by the table below, never from the op's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache

from .definition import Arith, Call, Definition, Expr, Fold, Guard, Otherwise, Read


class Kind(Enum):
    """How an expression depends on the pending operands: not at all and zero; not at all; linearly; in another way."""

    ZERO = 0
    FREE = 1
    LINEAR = 2
    OTHER = 3


def _additive(*kinds: Kind) -> Kind:
    """`a + b`, `select(c, a, b)`: linear in both together, so neither may be free, except if it is zero."""
    some = {kind for kind in kinds if kind is not Kind.ZERO}
    if not some:
        return Kind.ZERO
    return some.pop() if len(some) == 1 else Kind.OTHER


def _product(left: Kind, right: Kind) -> Kind:
    if Kind.OTHER in (left, right):
        return Kind.OTHER
    if Kind.ZERO in (left, right):
        return Kind.ZERO
    return Kind.OTHER if left is right is Kind.LINEAR else max(left, right, key=lambda kind: kind.value)


def _quotient(left: Kind, right: Kind) -> Kind:
    return left if right is Kind.FREE else Kind.FREE if left is not Kind.LINEAR and right is Kind.ZERO else Kind.OTHER


def _opaque(*kinds: Kind) -> Kind:
    return Kind.OTHER if Kind.LINEAR in kinds or Kind.OTHER in kinds else Kind.FREE


def _select(which: Kind, *cases: Kind) -> Kind:
    return _additive(*cases) if _opaque(which) is Kind.FREE else Kind.OTHER


ARITHMETIC: dict[str, Callable[[Kind, Kind], Kind]] = {
    "+": _additive,
    "-": _additive,
    "*": _product,
    "/": _quotient,
}
FUNCTIONS: dict[str, Callable[..., Kind]] = {
    "select": _select,
    "cast": _additive,
    "real": _additive,
    "imag": _additive,
    "conj": _additive,
    "complex": _additive,
}


@lru_cache(maxsize=1 << 14)
def linear_in(definition: Definition, pending: frozenset[int], zeros: frozenset[int]) -> bool:
    """Is the op linear jointly in the operands at `pending`? It is not if it does not depend on them at all."""

    def of_reads(read: Read) -> Sequence[Kind]:
        kinds = [
            Kind.LINEAR if at in pending else Kind.ZERO if at in zeros else Kind.FREE for at in definition.positions(read.name)
        ]
        return kinds if read.spread else [_additive(*kinds)]

    def of(expr: Expr) -> Kind:
        match expr:
            case Read():
                return _additive(*of_reads(expr))
            case Arith(sign, left, right):
                return ARITHMETIC[sign](of(left), of(right))
            case Call(function, args):
                kinds = [kind for arg in args for kind in (of_reads(arg) if isinstance(arg, Read) else [of(arg)])]
                return FUNCTIONS.get(definition.name if function == "@" else function, _opaque)(*kinds)
            case Fold(monoid, _, body):
                return of(body) if monoid in ("sum", "last") else _opaque(of(body))
            case Guard(_, start, _):
                return _opaque(*of_reads(start))
            case Otherwise(body, default):
                return _additive(of(body), of(default))
            case _:
                return Kind.FREE

    return bool(pending) and of(definition.body) is Kind.LINEAR
