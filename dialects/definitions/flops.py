"""How much an op computes: a count of its arithmetic, read off its definition.

Each function and each step of a fold counts 1 at every point of the indices around it. So a multiplication of matrices is
2·m·n·k. What only moves, chooses or casts elements counts nothing.

    out[m, n] = sum(k) lhs[m, k] * rhs[n, k]        m·n·k products and m·n·k additions
    out[i, j] = sum(k <= j) src[i, k]               a running sum: i·k additions
    out[i, j] = sum(v) [v = ids[i]] * src[v, j]     a lookup has one term: nothing
    out[v] = acc[v] + sum(i) [v = ids[i]] * up[i]   i additions of updates, and v additions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import prod

from ..ground.monoids import MERGE
from ..params import ParamsAttr
from .ground_form import Ground, Grounded, Guarded, along, subexpressions
from .grounding import ground
from .registry import definitions
from .syntax_tree import Apply, Fold, Read, Shape, Whole, factors

CHOOSES = ("cast", "either", "last", "select")
"""The functions and folds in definitions that compute nothing: each element of the result is one of the given elements."""


@lru_cache(maxsize=1 << 14)
def flops(name: str, params: ParamsAttr, ins: tuple[Shape, ...], outs: tuple[Shape, ...]) -> int | None:
    """The arithmetic of the op `lax.NAME` on these shapes, which may be local; None if its definition does not determine it.

    It does not for a primitive without a definition, for a function that takes a dim unpartitioned (a sort, a factorisation),
    and for a function that a user wrote.
    """
    definition = definitions[name]
    if definition.moved:
        return 0
    if name == "whole":
        return None
    form = ground(definition, params, ins, outs)
    own = name in definitions.added
    if any(_is_opaque(each, own) for equation in form.equations for each in _nodes(equation.body)):
        return None
    return sum(
        _of(form, equation.body, frozenset(i for target in equation.targets for i in along(*target.dims)))
        for equation in form.equations
    )


def _nodes(body: Ground) -> Iterator[Ground]:
    yield body
    for each in subexpressions(body):
        yield from _nodes(each)


def _is_opaque(body: Ground, own: bool) -> bool:
    """Whether the node is a sort, a function that takes whole dims, or the function of a user-defined op (`own`)."""
    if not isinstance(body, Apply):
        return isinstance(body, Fold) and body.monoid == MERGE
    reads = (each for each in body.args if isinstance(each, Read))
    return (own and body.function == "@") or any(isinstance(dim, Whole) for read in reads for dim in read.dims)


def _of(form: Grounded, body: Ground, ids: frozenset[int]) -> int:
    """The arithmetic inside an expression, for all values of the indices around it."""
    match body:
        case Fold():
            return _of_fold(form, body, ids)
        case Apply(function, args):
            # A guard only keeps or drops a product.
            is_masked = function == "mul" and any(isinstance(each, Guarded) for each in args)
            own = 0 if is_masked or function in CHOOSES else _points(form, ids)
        case _:
            own = 0
    return own + sum(_of(form, each, ids) for each in subexpressions(body))


def _of_fold(form: Grounded, fold: Fold[int, Ground], ids: frozenset[int]) -> int:
    """The arithmetic of a fold.

    An index whose value a guard determines, and the end of a prefix, add no factor to the count.
    """
    guards = (each for each in factors(fold.body) if isinstance(each, Guarded))
    found = frozenset(index for guard in guards for lands in guard.lands for index in lands.dim if index not in lands.window)
    inside = ids.union(fold.indices).difference(found, fold.upto)
    has_one_term = found.issuperset(fold.indices)
    steps = 0 if has_one_term or fold.monoid in CHOOSES else _points(form, inside)
    return steps + _of(form, fold.body, inside)


def _points(form: Grounded, ids: Iterable[int]) -> int:
    return prod(form.extents[index] for index in ids)
