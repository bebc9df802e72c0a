"""Arguments that are stored in parts but read whole: which are gathered again for each use, and which once.

A parameter that a later tactic stores in parts, later than the one that placed its readers, is gathered for each use. Any other
argument is redistributed once. If ops that only move its elements are read whole, it is gathered before them.

    %a {x*8, 64}: %t = transpose %a; fft %a, fft %t   -->   one all_gather of %a, and a local transpose, not two all_gathers
"""

from __future__ import annotations

from operator import attrgetter

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis
from ..program.program import NO_VALUE, NodeId, ValueId
from ..redistribute.steps import Bytes
from .placements import OpPlacement, Placements
from .table import Claim

Use = tuple[NodeId, int]


def is_stored(placements: Placements, value: ValueId) -> bool:
    """Whether an argument is only stored on an axis, because an op that reads it is placed there otherwise or not at all."""
    table, end = placements.table, placements.program.end
    _, reads = reads_of(placements, value)
    for axis in placements.homes[value].axes:
        own = table.claim(value, axis)
        readers = [use[0] for use, _ in reads if use[0] < end and axis not in placements.wanted(*use).axes]
        if own is not None and any(_is_taken(placements, number, axis, own) for number in readers):
            return True
    return False


def _is_taken(placements: Placements, number: NodeId, axis: MeshAxis, own: Claim) -> bool:
    """Whether an op does not follow a value's claim: an earlier tactic placed it, or propagation did not get there."""
    table, node = placements.table, placements.program.nodes[number]
    claim = table.axes[axis].nodes[number]
    if claim is None:
        stops = ((number, position, axis) in table.blocked for position in range(len(node.operands)))
        return (number, NO_VALUE, axis) not in table.conflicts and not any(stops)
    return claim.tactic < own.tactic


def gathered_at_source(placements: Placements) -> None:
    """Takes axes off ops that only move an argument's elements, if they are read whole and this receives fewer bytes."""
    program = placements.program
    for value in program.arguments:
        axes = set(placements.homes[value].axes)
        if not axes or len(program.uses[value]) < 2:
            continue
        moved, reads = reads_of(placements, value)
        if not moved or all(axes <= set(placements.wanted(*use).axes) for use, _ in reads) or is_stored(placements, value):
            continue
        lost = {number: axes - _read_on(placements, program.nodes[number].results[0]) for number in moved}
        after = {number: placements.without(program.nodes[number], gone) for number, gone in lost.items() if gone}
        fixed = any(value in placements.pinned for number in after for value in program.nodes[number].results)
        if after and not fixed and _received(placements, value, after) < _received(placements, value, {}):
            for number, placed in after.items():
                placements.put(program.nodes[number], placed)


def _read_on(placements: Placements, value: ValueId) -> set[MeshAxis]:
    """The axes on which any reader wants the value, or a value made by only moving its elements."""
    _, reads = reads_of(placements, value)
    return {axis for use, _ in reads for axis in placements.wanted(*use).axes}


def _received(placements: Placements, value: ValueId, after: dict[NodeId, OpPlacement]) -> Bytes:
    """The bytes that a device receives for a value and for values made by moving its elements; each layout counts once."""
    program, moves = placements.program, set[tuple[ValueId, Layout]]()
    moved, reads = reads_of(placements, value)
    homes = {value: placements.homes[value]}
    for number in moved:
        placed, node = after.get(number, placements.nodes[number]), program.nodes[number]
        homes[node.results[0]] = placed.produced[0]
        moves.add((node.operands[0], placed.wanted[0]))
    moves.update((read, placements.wanted(*use)) for use, read in reads)
    return sum((placements.received(read, homes[read], wanted) for read, wanted in moves), start=0)


def reads_of(placements: Placements, value: ValueId) -> tuple[list[NodeId], list[tuple[Use, ValueId]]]:
    """The ops that only move or cast a value, or let it enter a loop, and the other uses with the value that each reads."""
    program, moved, reads = placements.program, list[NodeId](), list[tuple[Use, ValueId]]()
    for each in program.downstream([value], attrgetter("passes_on")):
        for use in placements.uses(each):
            if use[0] < len(program.nodes) and program.nodes[use[0]].passes_on:
                moved.append(use[0])
            else:
                reads.append((use, each))
    return moved, reads
