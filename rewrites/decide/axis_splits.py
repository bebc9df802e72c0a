"""Splits an axis into sub-axes that pass the reshapes at which the axis stops, because that receives less.

    f32[d*2, 2048], d of 4 devices, reshaped to (2, 4, 2048)   -->   f32[d.0:2, d.1:2*2, 2048], and no all_gather

A table is what tactics claim, and stays as it is. The split table is what the plan runs.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise
from math import prod

from ...dialects.ranges.algebra import Axis, Place, SubAxis
from ..program.program import NO_NODE, NodeId, ValueId
from .propagate import propagate
from .table import Table


def split_tables(table: Table, reads: Set[tuple[NodeId, Place]]) -> Iterator[Table]:
    """Yields the table with one axis split, for each split with which claims pass a stop, and for one with which all pass.

    Only the stops at `reads` count: ops with an operand that is sent over the axis. Layers that are alike stop alike, and are
    tried together.
    """
    ways = dict[Axis, dict[tuple[int, ...], None]]()
    for stop in table.blocked.values() if table.may_split else ():
        if isinstance(stop.axis, Axis) and (stop.node, stop.axis) in reads and (sizes := table.ways_across(stop)):
            ways.setdefault(stop.axis, {})[sizes] = None
    for axis, found in ways.items():
        for sizes in dict.fromkeys([*found, _common(found)]):
            yield _split(table, axis, [SubAxis(axis, sizes, number) for number in range(len(sizes))])


def _common(ways: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The sizes of sub-axes of which those of all ways consist; those of the first way if there are none.

    ```
    4, 2 and 2, 4   -->   2, 2, 2
    ```
    """
    first, *_ = ways
    spans = sorted({prod(sizes[at:]) for sizes in ways for at in range(len(sizes) + 1)}, reverse=True)
    return first if any(a % b for a, b in pairwise(spans)) else tuple(a // b for a, b in pairwise(spans))


def _split(table: Table, axis: Place, parts: Sequence[SubAxis]) -> Table:
    """The table with these parts instead of the axis, propagated on from where the axis ended."""
    made = table.refined({axis: parts})
    for (tactic, held), values in sorted(_ends(table, axis).items()):
        for part in parts:
            propagate(made, part, values, tactic, held)
    return made


def _ends(table: Table, axis: Place) -> dict[tuple[int, bool], dict[ValueId, None]]:
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
