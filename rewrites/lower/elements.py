"""Indices that are elements of an array, on one device: counted from its block's beginning, with a mask.

An op on elements is the user's own and is given ids that lie inside: those of other blocks become 0, and what they read or
write is zero.

    ids [9, 2], a block from 8 on   -->   ids [1, 0], mask [true, false]
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ..program.program import Node
from .emit import IDS, Emitter, type_at


def shifted(ids: SSAValue, offset: SSAValue, block: int, emit: Emitter) -> tuple[SSAValue, SSAValue]:
    """The ids inside of the block, in their own dtype, and the mask of those that were."""
    dtype, shape = type_at(ids).dtype, type_at(ids).shape
    here = emit.narrow(ids)
    here = emit.make("sub", (here, emit.spread(offset, shape)), IDS, shape)
    inside = emit.between(here, block)
    kept = emit.select(inside, here)
    return kept if dtype == IDS else emit.cast(kept, dtype), inside


def masked(
    value: SSAValue, mask: SSAValue, ids: int, at: dict[int, tuple[int, int, int]], node: Node, emit: Emitter
) -> SSAValue:
    """Zero where the mask is false; the mask's dims are found in the value by the indices that `ids` shares with it."""
    rows = node.signature.operand_dims[ids]
    dims = [(dim, row[0][0]) for dim, row in enumerate(rows) if row]
    narrow = emit.reshape(mask, tuple(type_at(mask).shape[dim] for dim, _ in dims))
    into = tuple(at[index][0] for _, index in dims)
    return emit.select(emit.spread(narrow, type_at(value).shape, into), value)
