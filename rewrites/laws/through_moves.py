"""Follows values, with an index for each dim, back through ops that only move elements.

%t = transpose %w; %b = broadcast_in_dim %t      %b at i, j, k   -->   %w at k, j
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.definitions.tilings import SubIndices
from ..program.program import Node, Program, ValueId


@dataclass(frozen=True, slots=True)
class Seen:
    """A value, with the index of each of its dims. Dims of extent 1 have None, because their index is the constant 0."""

    value: ValueId
    ids: tuple[int | None, ...]

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(each for each in self.ids if each is not None)


def single(dims: SubIndices) -> tuple[int | None, ...] | None:
    """The one index that each dim has, or None for extent 1; None if some dim has several, or is read through a window."""
    if any(len(digits) > 1 or (digits and (digits[0].minor != 1 or digits[0].reach)) for digits in dims):
        return None
    return tuple(digits[0].at if digits else None for digits in dims)


def through_moves(program: Program, seen: Seen) -> Seen:
    """Follows a value back through ops that only move it, and returns the source at the same elements."""
    while (number := program.producer[seen.value]) >= 0:
        node = program.nodes[number]
        if not _rearranges(program, node) or (ids := at_operand(node, 0, seen)) is None:
            break
        seen = Seen(node.operands[0], ids)
    return seen


def at_operand(node: Node, position: int, seen: Seen) -> tuple[int | None, ...] | None:
    """The indices of an operand, given those of the op's result; None if they do not all follow."""
    out, own = single(node.signature.result_dims[0]), single(node.signature.operand_dims[position])
    if out is None or own is None:
        return None
    named = {mine: each for mine, each in zip(out, seen.ids, strict=True) if mine is not None}
    return None if set(own) - {None} > named.keys() else tuple(None if each is None else named.get(each) for each in own)


def _rearranges(program: Program, node: Node) -> bool:
    """Whether an op rearranges the dims of its only operand. A tag, a cast or a barrier does not."""
    if node.is_border or len(node.operands) != 1 or len(node.results) != 1 or not node.signature.instance.moves:
        return False
    (operand,), (result,) = node.operands, node.results
    dims = node.signature.operand_dims[0], node.signature.result_dims[0]
    return dims[0] != dims[1] and program.types[operand].dtype == program.types[result].dtype
