"""Decides whether an op merges the blocks that it has sorted, or sorts its gathered operands: the way that receives less.

A merge leaves its results in blocks. Where they are wanted whole, gathering the operands receives less.

    rev (sort %x {x*8}), over 8 devices, where `rev` wants its operand whole   -->   rev (sort (gather %x))
"""

from __future__ import annotations

from ..program.program import Node, NodeId, ValueId
from ..redistribute.steps import Bytes
from .placements import OpPlacement, Placements


def unmerged(placements: Placements) -> list[NodeId]:
    """Unplaces and returns the ops for which merging would receive more, and unplaces operand-free ops that only they read."""
    nodes, found = placements.program.nodes, list[NodeId]()
    for node in [node for node, placed in zip(nodes, placements.nodes, strict=True) if placed.merged is not None]:
        whole = _without(placements, node, node)
        if _received(placements, node, whole) < _received(placements, node, placements.nodes[node.number]):
            for each in (*(placements.program.made_by(v) for v in node.operands if _is_free(placements, v, node)), node):
                placements.put(each, _without(placements, each, node))
            found.append(node.number)
    return found


def _without(placements: Placements, node: Node, merging: Node) -> OpPlacement:
    """The op's placement without the axes over which `merging` merges."""
    merged = placements.nodes[merging.number].merged
    return placements.without(node, set() if merged is None else {*merged.axes})


def _is_free(placements: Placements, value: ValueId, node: Node) -> bool:
    """Whether only this op reads the value, and devices can make it in any layout because its own op has no operands."""
    maker = placements.program.maker(value)
    alone = {user for user, _ in placements.uses(value)} == {node.number} and value not in placements.pinned
    return alone and maker is not None and not maker.operands


def _received(placements: Placements, node: Node, placed: OpPlacement) -> Bytes:
    """The bytes that a device receives for an op's operands, for its merge, and to bring its results to the wanted layouts."""
    moved = placements.received
    total: Bytes = placed.merged.bytes if placed.merged is not None else 0
    for value, wanted in zip(node.operands, placed.wanted, strict=True):
        if not _is_free(placements, value, node):
            total += moved(value, placements.with_sums(value), wanted)
    for value, layout in zip(node.results, placed.produced, strict=True):
        home, end = placements.pinned.get(value, layout), placements.program.end
        uses = placements.uses(value)
        targets = {placements.wanted(*use) if use[0] < end else home.natural for use in uses}
        total += moved(value, layout, home) + sum(moved(value, home, target) for target in targets)
    return total
