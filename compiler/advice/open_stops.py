"""Decides which stops are open: no later tactic has placed the op on the axis, or said that the value there is kept whole.

sort(x), x on `data`: a stop   --  replicate('x', 'data') first, or tile('sort#0', 1, 'data')   -->   none
"""

from collections.abc import Iterator
from itertools import product

from ...dialects.ranges.algebra import Place
from ...rewrites.decide.table import BlockedOp
from ...rewrites.program.program import NodeId
from ..plan.state import State

WANTED_WHOLE = "its result is wanted whole, and a merge of blocks would receive more than a gather"
"""The reason of a stop that is due to the uses of the op's results."""


def open_stops(plan: State) -> list[BlockedOp]:
    """The stops at ops that no later tactic has placed on the axis, and at sorts that do not merge their blocks."""
    return [each for each in plan.once(_met) if not _is_passed(plan, each)]


def passed_stops(plan: State) -> list[BlockedOp]:
    """The stops that the decisions have overcome: the axis is split into parts that pass, or the op runs along another dim."""
    return [each for each in plan.once(_met) if _is_passed(plan, each)]


def _is_passed(plan: State, stop: BlockedOp) -> bool:
    return dim_instead(plan, stop) is not None or (plan.decided is not plan and not is_open(plan.decided, stop))


def dim_instead(plan: State, stop: BlockedOp) -> int | None:
    """The dim of the value along which the op of a stop runs on the axis, because that costs less; None if there is none."""
    instead = plan.decisions.placements.elsewhere.get(stop.node, {}).get(stop.axis)
    if instead is None or instead.claim is None:
        return None
    at = plan.source.program.nodes[stop.node].signature.places_of(stop.operand)
    return at[instead.claim.at].dim if instead.claim.at in at else None


def is_open(plan: State, stop: BlockedOp) -> bool:
    """Whether the axis of a stop, or a part of it, stops at the same operand or result of the same op in this plan."""
    ends, axes = plan.once(_ends), plan.mesh.split(stop.axis.axis)
    return any((stop.node, stop.operand, axis) in ends for axis in axes)


def _ends(plan: State) -> frozenset[tuple[NodeId, int, Place]]:
    """The operands and results of ops at which an axis stops."""
    return frozenset((each.node, each.operand, each.axis) for each in open_stops(plan))


def _met(plan: State) -> list[BlockedOp]:
    axes = plan.table.axes
    unplaced = (each for each in plan.table.blocked.values() if axes[each.axis].nodes[each.node] is None)
    return [each for each in (*_gathered(plan), *unplaced) if _arrives(plan, each)]


def _arrives(plan: State, stop: BlockedOp) -> bool:
    """Whether the claim that stops is still there. A later tactic may have moved the value, or kept it whole."""
    claim = plan.table.claim(plan.source.program.nodes[stop.node].end(stop.operand), stop.axis)
    return claim is None or claim.at == stop.dim


def _gathered(plan: State) -> Iterator[BlockedOp]:
    """Yields the stops at ops that do not merge blocks, because their results are wanted whole."""
    for node in (plan.source.program.nodes[number] for number in plan.decisions.gathered):
        placed = [(at, factor.axis) for at, factor in plan.decisions.placements.nodes[node.number].placement]
        for (position, at), (axis, table) in product(enumerate(node.signature.operand_at), plan.table.axes.items()):
            claim = table.nodes[node.number]
            parts = plan.decided.mesh.split(axis)
            if claim is not None and claim.at in at and not any((claim.at, part) in placed for part in parts):
                dim = at[claim.at].dim
                extent = plan.source.program.shape(node.operands[position])[dim]
                yield BlockedOp(node.number, position, axis, dim, extent, claim.factor, WANTED_WHOLE, claim.tactic)
