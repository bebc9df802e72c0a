"""Lookups whose elements reach the devices bit by bit.

A lookup in a tiled table leaves a pending sum: one device has the element, all others have the unit. While ops only move the
elements, resolving the sum needs no arithmetic, so every bit arrives: the sign of a zero, the payload of a NaN.

    %e = gather %table[(v: model), :] %ids   -->   f32[4, 2]{pick model}, not f32[4, 2]{+model}
"""

from __future__ import annotations

from ..decide.decide import Decisions
from ..program.program import Node, Program, ValueId


def picked(decisions: Decisions) -> frozenset[ValueId]:
    """Returns the values whose pending sums come from such a lookup and pass only through ops that move elements."""
    placements, carried = decisions.placements, decisions.carried
    program, found = placements.program, dict[ValueId, Node]()
    for node in program.nodes:
        if _moves(node, program) and node.operands[0] in found if node.number in carried else _reads(node, decisions):
            found[node.results[0]] = node
    refused = {*found}
    while refused:
        refused = set[ValueId]()
        for value, node in found.items():
            whole = all(each.results[0] in found for each in program.readers(value) if each.number in carried)
            if not whole or (node.number in carried and node.operands[0] not in found):
                refused.add(value)
        for value in refused:
            del found[value]
    return frozenset(found)


def _reads(node: Node, decisions: Decisions) -> bool:
    """Whether every sum that the op leaves is that of a lookup by index vectors."""
    placed, indices = decisions.placements.nodes[node.number], node.signature.indices
    if len(node.results) != 1 or not any(placed.pending):
        return False
    pending = {each.axis for pend in placed.pending for each in pend}
    read = {factor.axis for index, factor in placed.placement if indices[index].reads and not indices[index].by_element}
    return pending <= read


def _moves(node: Node, program: Program) -> bool:
    """Whether the op moves elements, and does not cast them."""
    return node.signature.instance.moves and program.types[node.operands[0]].dtype == program.types[node.results[0]].dtype
