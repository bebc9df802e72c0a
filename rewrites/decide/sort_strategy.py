"""Decides whether an op merges the blocks that it has sorted, or sorts its gathered operands: the way that receives less.

A merge leaves its results in blocks. Where they are wanted whole, gathering the operands receives less.

    rev (sort %x {x*8}), over 8 devices, where `rev` wants its operand whole   -->   rev (sort (gather %x))
"""

from __future__ import annotations

from ..program.program import Node, ValueId
from .choices import Choices
from .place_by_cut import take_off
from .placements import Placements


def sort_gathered(choices: Choices) -> None:
    """Unplaces the ops for which merging would cost more, and operand-free ops that only they read."""
    placements = choices.placements
    for node, placed in zip(placements.program.nodes, placements.nodes, strict=True):
        if (merged := placed.merged) is None:
            continue
        makers = (placements.program.made_by(value) for value in node.operands if _is_free(placements, value, node))
        if take_off(choices, (*makers, node), {*merged.axes}):
            choices.sorts_gathered.append(node.number)


def _is_free(placements: Placements, value: ValueId, node: Node) -> bool:
    """Whether only this op reads the value, and devices can make it in any layout because its own op has no operands."""
    maker = placements.program.maker(value)
    alone = {user for user, _ in placements.uses(value)} == {node.number} and value not in placements.pinned
    return alone and maker is not None and not maker.operands
