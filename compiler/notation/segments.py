"""Segment sums: a sum into looked-up positions of the result is a scatter-add, without a one-hot table.

y[n: N, d] = sum(e) [ids[e] = n] * m[e, d]   -->   jax.ops.segment_sum(m, ids, N)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from ...dialects.definitions.tree import Apply, Fold, Group
from ...dialects.errors import Span
from .code import Code
from .terms import Index, Mask, Term, at, dtype, free, settled
from .value import Value, Walker, fit, squeezed


def segments(values: Walker, term: Fold[Index, Term], parts: Sequence[Term]) -> Value | None:
    """The sum as a scatter-add, if one factor equates an index of the result with a looked-up one."""
    asked = {part: found for part in parts if isinstance(part, Mask) and (found := placed(part, term.indices))}
    indices = [index for index, _ in asked.values()]
    rest = [part for part in parts if not (isinstance(part, Mask) and part in asked)]
    if not asked or len(set(indices)) < len(indices) or all(isinstance(part, Mask) or not free(part) for part in rest):
        return None
    if any(index in free(part) for part in rest for index in indices):
        return None
    added = reduce(partial(_times, at=at(term)), rest)
    along = list(dict.fromkeys(each for _, ids in asked.values() for each in free(ids)))
    within = tuple(each for each in term.indices if each not in along)
    code = Code(at(term))
    data = squeezed(code, values.term(Fold("sum", within, added, span=term.span) if within else added))
    kept = [each for each in values.order if each in data.dims and each not in along]
    kept += [each for each in data.indices if each not in (*along, *kept)]
    lacking = any(each not in data.dims for each in along)
    data = fit(code, data, (*along, *kept))
    if lacking:
        data = Value(code.call("jnp.broadcast_to", data.code, tuple(each.extent for each in (*along, *kept))), (*along, *kept))
    positions = [fit(code, squeezed(code, values.term(ids)), along).code for _, ids in asked.values()]
    extents = tuple(index.extent for index in indices)
    return Value(code.call("notation.scatter_sum", data.code, extents, *positions), (*indices, *kept))


def placed(mask: Mask, folded: Sequence[Index]) -> tuple[Index, Term] | None:
    """The index of the result and the looked-up index that a mask equates."""
    match mask.condition:
        case Apply("eq", (Group((index,)), ids)) | Apply("eq", (ids, Group((index,)))) if index not in folded:
            looked_up = free(ids) and set(free(ids)) <= set(folded) and not isinstance(ids, Group)
            return (index, ids) if looked_up else None
        case _:
            return None


def _times(one: Term, other: Term, at: Span) -> Term:
    return Apply("mul", (one, other), settled(dtype(other if isinstance(one, Mask) else one)), at)
