"""Splits an axis into sub-axes that pass the reshapes at which the axis stops, because that receives less.

    f32[d*2, 2048], d of 4 devices, reshaped to (2, 4, 2048)   -->   f32[d.0:2, d.1:2*2, 2048], and no all_gather

A table is what tactics claim, and stays as it is. The split table is what the plan runs.
"""

from collections.abc import Iterator, Set

from ...dialects.ranges.algebra import MeshAxis, SubAxis
from ..program.program import NO_NODE, NodeId, ValueId
from .propagate import propagate
from .table import Table


def split_tables(table: Table, reads: Set[tuple[NodeId, MeshAxis]]) -> Iterator[Table]:
    """Yields the table with one axis split, for each split with which a claim passes a stop.

    Only the stops at `reads` count: ops with an operand that is sent over the axis. Layers that are alike stop alike, and are
    tried together.
    """
    stops = (stop for stop in table.blocked.values() if (stop.node, stop.axis) in reads) if table.may_split else ()
    for axis, sizes in dict.fromkeys((stop.axis, sizes) for stop in stops if (sizes := table.ways_across(stop))):
        parts = [SubAxis(axis.axis, sizes, number) for number in range(len(sizes))]
        made = table.refined({axis: parts})
        for (tactic, held), values in sorted(_ends(table, axis).items()):
            for part in parts:
                propagate(made, part, values, tactic, held)
        yield made


def _ends(table: Table, axis: MeshAxis) -> dict[tuple[int, bool], dict[ValueId, None]]:
    """The values at which propagation along an axis ended, by the tactic that propagated, and whether its claims are held."""
    claims = table.axes[axis]
    held = {claim.tactic for claim in (*claims.nodes, *claims.values) if claim is not None and claim.held}
    found = dict[tuple[int, bool], dict[ValueId, None]]()

    def add(tactic: int, *values: ValueId) -> None:
        found.setdefault((tactic, tactic in held), {}).update(dict.fromkeys(values))

    for stop in (stop for stop in table.blocked.values() if stop.axis is axis):
        add(stop.tactic, table.program.nodes[stop.node].end(stop.operand))
    for clash in (clash for clash in table.conflicts.values() if clash.axis is axis):
        node = None if clash.node == NO_NODE else table.program.nodes[clash.node]
        values = (clash.value,) if node is None else (*node.operands, *node.results)
        add(max(claim.tactic for claim, _ in clash.claims), *values)
    return found
