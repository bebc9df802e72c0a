"""Sums by segments: what is added at a looked-up place of the result is a scatter-add, and no table of all places is made.

y[n: N, d] = sum(e) [ids[e] = n] * m[e, d]   -->   jax.ops.segment_sum(m, ids, N)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from .code import Code
from .terms import Apply, Fold, Index, Mask, Position, Term, dtype, free, settled
from .value import Value, Walker, fit, squeezed


def segments(values: Walker, term: Fold, parts: Sequence[Term]) -> Value | None:
    """The sum as a scatter-add, if one factor says at which place of the result a looked-up index stands."""
    asked = {part: place for part in parts if isinstance(part, Mask) and (place := placed(part, term.indices))}
    indices = [index for index, _ in asked.values()]
    rest = [part for part in parts if not (isinstance(part, Mask) and part in asked)]
    if not asked or len(set(indices)) < len(indices) or all(isinstance(part, Mask) or not free(part) for part in rest):
        return None
    if any(index in free(part) for part in rest for index in indices):
        return None
    added = reduce(lambda one, other: Apply("mul", (one, other), _dtype(one, other), term.span), rest)
    along = list(dict.fromkeys(each for _, ids in asked.values() for each in free(ids)))
    within = tuple(each for each in term.indices if each not in along)
    code = Code(term.span)
    data = squeezed(code, values.term(Fold("sum", within, added, term.span) if within else added))
    kept = [each for each in values.order if each in data.dims and each not in along]
    kept += [each for each in data.indices if each not in (*along, *kept)]
    lacking = any(each not in data.dims for each in along)
    data = fit(code, data, (*along, *kept))
    if lacking:
        data = Value(code.call("jnp.broadcast_to", data.code, tuple(each.extent for each in (*along, *kept))), (*along, *kept))
    places = [fit(code, squeezed(code, values.term(ids)), along).code for _, ids in asked.values()]
    extents = tuple(index.extent for index in indices)
    return Value(code.call("notation.scatter_sum", data.code, extents, *places), (*indices, *kept))


def placed(mask: Mask, folded: Sequence[Index]) -> tuple[Index, Term] | None:
    """The index of the result and the looked-up one that a mask says to be equal."""
    match mask.condition:
        case Apply("eq", (Position(index), ids)) | Apply("eq", (ids, Position(index))) if index not in folded:
            looked_up = free(ids) and set(free(ids)) <= set(folded) and not isinstance(ids, Position)
            return (index, ids) if looked_up else None
        case _:
            return None


def _dtype(one: Term, other: Term) -> str:
    return settled(dtype(other if isinstance(one, Mask) else one))
