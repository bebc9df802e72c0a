"""Moves collectives out of loops, to before or after them, so that they run once and not in every trip.

A value that is the same in all trips is gathered before the loop, if that receives fewer bytes. A carry to which each trip adds
a reduction is not tiled on the axis of the sum: it stays a pending sum in the loop, and is scattered after it. Meanwhile each
device holds all of it, so this is done in the order of the program, as long as there is memory.

    %w {data*8, 64}, read whole by a loop of 32 trips   -->   1 all_gather before the loop, not 32
    %g {data*8, 64} = %g + sum(data) ...                -->   %g {8*8, 64}{+data} in the loop, 1 reduce_scatter after it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from ...dialects.ranges.algebra import Place
from ..program.breadth_first import reached
from ..program.program import Node, NodeId, ValueId
from .choices import Choices, reads_of
from .deferred_reductions import DeferredReduction, carried_sum, is_linear, through
from .placements import OpPlacement, Placements
from .regather import gather_earlier


def gather_before_loops(choices: Choices) -> None:
    """Lets values enter loops in the layouts in which the loops read them, where that costs less in all trips."""
    program, each_trip = choices.program, choices.placements.table.each_trip
    for node in reversed(program.nodes) if program.has_regions else ():
        if node.is_border and node.passes_on and program.source(node.operands[0]) not in each_trip:
            _gather_before(choices, node)


@dataclass(frozen=True, slots=True)
class Accumulated:
    """A carry tiled on an axis, to which each trip adds a sum over that axis, with the ops that need not be tiled."""

    axis: Place
    carry: NodeId
    nodes: frozenset[NodeId]
    more: int = 0
    """The bytes that a device holds while the sum waits, beside those of its own part."""
    fits: bool = True
    """Whether the memory of a chip has room for them. If not, the sum is scattered in each trip."""


def carried_sums(placements: Placements) -> tuple[dict[NodeId, DeferredReduction], list[Accumulated]]:
    """Returns the ops that carry a pending sum, and the sums that wait for the end of a loop, or would if there were memory.

    Takes placements off ops in loops where that saves collectives in every trip.
    """
    if not placements.program.has_regions:
        return through(placements), []
    found = [*_accumulated(placements)]
    before = {number: placements.nodes[number] for each in found for number in each.nodes}
    carried, found = _carried(placements, found, before)
    found = _with_memory(placements, found, before) if found else []
    if large := [each for each in found if not each.fits]:
        carried, found = _carried(placements, [each for each in found if each.fits], before)
    return carried, found + large


def _carried(
    placements: Placements, found: list[Accumulated], before: Mapping[NodeId, OpPlacement]
) -> tuple[dict[NodeId, DeferredReduction], list[Accumulated]]:
    """The ops that carry a pending sum if these carries are not tiled, and those of the carries that then are sums."""
    nodes = placements.program.nodes
    while True:
        for number, placed in before.items():
            placements.put(nodes[number], placed)
        for each in found:
            for node in (nodes[number] for number in each.nodes):
                placements.put(node, placements.without(node, {each.axis}))
        carried = through(placements)
        kept = [each for each in found if any(pend.axis == each.axis for pend in carried_sum(carried, each.carry))]
        if len(kept) == len(found):
            return carried, found
        found = kept


# --- values that are the same in all trips ---------------------------------------------------------------------------


def _gather_before(choices: Choices, border: Node) -> None:
    """Lets a value enter a loop in the layout in which the loop reads it, if that costs less in all trips."""
    placements = choices.placements
    moved, reads = reads_of(placements, border.results[0])
    wanted = [placements.wanted(*use) for use, _ in reads]
    axes = {axis for axis in placements.axes(border) if wanted and not any(axis in each.axes for each in wanted)}
    if axes:
        gather_earlier(choices, [border, *moved], axes)


# --- sums over all trips ---------------------------------------------------------------------------------------------


def _with_memory(placements: Placements, found: list[Accumulated], before: Mapping[NodeId, OpPlacement]) -> list[Accumulated]:
    """Says of each sum how many bytes more a device holds while it waits, and whether its memory has room for them.

    In the order of the program, as long as there is room. `before` says how ops are placed if no sum waits.
    """
    program, more = placements.program, dict[NodeId, int]()
    for carry, sums in groupby(found, key=lambda each: each.carry):
        kept = {number for each in sums for number in each.nodes if program.nodes[number].op_name in ("carry", "collect")}
        values = [(program.nodes[number].results[0], before[number].produced[0]) for number in kept]
        more[carry] = sum(placements.home_bytes(value) - placements.local_bytes(value, tiled) for value, tiled in values)
    room, fits = program.mesh.chip.memory - _stored(placements) + sum(more.values()), set[NodeId]()
    for carry, size in more.items():
        if size <= room:
            fits.add(carry)
            room -= size
    return [replace(each, more=more[each.carry], fits=each.carry in fits) for each in found]


def _stored(placements: Placements) -> int:
    """The bytes of a device's arguments and results, and of what loops carry, stack, and have gathered before them."""
    program, stored = placements.program, {*placements.program.arguments}
    for node in program.nodes:
        enters = node.op_name == "enter" and node.passes_on
        if node.op_name in ("carry", "collect") or (enters and _is_gathered(placements, node)):
            stored.add(node.results[0])
    makers = ((value, program.maker(value)) for value in program.returned)
    # What leaves a loop is what the loop carried.
    stored |= {value for value, maker in makers if maker is None or maker.op_name != "leave"}
    return sum(map(placements.home_bytes, stored))


def _is_gathered(placements: Placements, enter: Node) -> bool:
    """Whether a value that enters a loop is gathered before it."""
    return not {*placements.homes[enter.operands[0]].axes} <= {*placements.homes[enter.results[0]].axes}


def _accumulated(placements: Placements) -> Iterator[Accumulated]:
    for node in placements.program.nodes:
        if node.op_name == "carry":
            for axis in sorted(placements.axes(node)):
                if (nodes := _Sum(placements, node, axis).nodes()) is not None:
                    yield Accumulated(axis, node.number, frozenset(nodes))


class _Sum:
    """The ops by which one trip adds to a carry."""

    def __init__(self, placements: Placements, carry: Node, axis: Place) -> None:
        self.placements = placements
        self.program = placements.program
        self.carry = carry
        self.axis = axis

    def nodes(self) -> set[NodeId] | None:
        """The ops tiled on the axis that compute the carry linearly from itself and sums.

        None if the carry depends on other ops.
        """
        first, last = self.carry.operands
        made = self.zeros(first)
        if made is None:
            return None
        sums, linear = {self.carry.results[0]}, set[NodeId]()
        for number in sorted(node.number for node in self.program.upstream([last], self.is_inside)):
            node = self.program.nodes[number]
            positions = frozenset([at for at, value in enumerate(node.operands) if value in sums or self.is_pending(value)])
            others = (value for at, value in enumerate(node.operands) if at not in positions and not self.program.zero[value])
            if positions and is_linear(self.program, node, positions) and not any(map(self.is_tiled, others)):
                linear.add(number)
                sums.update(node.results)
        inside = {node.number for node in self.program.upstream([last], lambda node: node.number in linear)}
        own = {self.carry.number} | inside
        is_sum = any(self.is_pending(value) for number in inside for value in self.program.nodes[number].operands)
        if not is_sum or last not in sums or not all(self.is_private(number, own) for number in own):
            return None
        return made | own

    def is_pending(self, value: ValueId) -> bool:
        return any(each.axis == self.axis for each in self.placements.sources.get(value, ()))

    def is_tiled(self, value: ValueId) -> bool:
        return self.axis in self.placements.homes[value].axes

    def is_inside(self, node: Node) -> bool:
        """Whether an op is tiled on the axis and makes no sum over it. Of borders, only those at which a loop stacks values."""
        is_plain = (not node.is_border or node.op_name == "collect") and len(node.results) == 1
        return is_plain and self.axis in self.placements.axes(node) and not self.is_pending(node.results[0])

    def is_private(self, number: NodeId, among: set[NodeId]) -> bool:
        """Whether only these ops and the loop's exit read the op's results, and no tactic has placed them."""
        for value in self.program.nodes[number].results:
            others, program = {user for user, _ in self.placements.uses(value)} - among, self.program
            left = all(user < program.end and program.nodes[user].op_name == "leave" for user in others)
            if value in self.placements.pinned or not left:
                return False
        return True

    def zeros(self, value: ValueId) -> set[NodeId] | None:
        """The ops tiled on the axis that make the zeros with which a carry starts; None if it starts with something else."""
        made = set[NodeId]()
        for each in reached(filter(self.is_tiled, [value]), lambda each: filter(self.is_tiled, self.program.made_of(each))):
            node = self.program.maker(each)
            if node is None or node.is_border or not self.program.zero[each] or each in self.placements.pinned:
                return None
            if self.axis not in self.placements.axes(node):
                return None
            made.add(node.number)
        return made
