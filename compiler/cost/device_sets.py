"""What a plan on several device sets does on each of them, and what crosses from one to another.

on("block0", stage=0).on("block1", stage=1)   -->   h of block0: 2,048 bytes from stage=0 to stage=1, for the add of block1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...dialects.ground.amounts import of_bytes
from ...dialects.mesh import Mesh
from ...rewrites.decide.decide import Move
from ...rewrites.decide.device_sets import DeviceSets, coordinates
from ...rewrites.program.program import Node, ValueId
from ..inputs.lines import SourceLine, at_line, place_of
from ..plan.source_lines import line_of_op
from ..plan.state import State
from ..views.listing import Listing, ListingForm
from ..views.view import Cell


@dataclass(frozen=True, slots=True)
class Transfer:
    """A value that crosses from one device set to another: each device there receives `bytes` of it in one call.

    `use` is the op that reads it. `why` says why that runs there.
    """

    value: str
    bytes: int
    source: str
    target: str
    use: str
    why: str
    line: SourceLine | None
    number: ValueId = field(repr=False, compare=False)

    def __str__(self) -> str:
        crosses = f"`{self.value}` from {self.source} to {self.target}: {self.bytes:,} bytes to each device"
        return f"{crosses}, for `{self.use}`{at_line(self.line)}, {self.why}"

    __repr__ = __str__


def transfers(plan: State) -> Listing[Transfer]:
    """The values that cross from one device set to another, in the order in which they are needed."""
    return Listing(plan.once(_transfers), ListingForm("transfers", _COLUMNS, _row, spare=("at",)))


def _transfers(plan: State) -> Sequence[Transfer]:
    sets = plan.table.sets
    return [] if sets is None else [_transfer(plan, sets, *each) for each in sets.crossings]


def crossing_bytes(plan: State) -> int:
    """The bytes that devices receive from other sets in a call, one device of each set together."""
    return sum(each.bytes for each in plan.once(_transfers))


_COLUMNS = ("value", "from", "to", "bytes", "for", "at", "why")


def _row(each: Transfer) -> Sequence[Cell]:
    return each.value, each.source, each.target, each.bytes, each.use, place_of(each.line), each.why


def _transfer(plan: State, sets: DeviceSets, value: ValueId, on: Mesh, node: Node) -> Transfer:
    return Transfer(
        plan.source.addresses.names[value],
        _bytes(plan, value, node),
        coordinates(sets.of(value)),
        coordinates(on),
        node.op_name,
        reason(plan, sets, node),
        line_of_op(plan, node),
        value,
    )


def _bytes(plan: State, value: ValueId, node: Node) -> int:
    """What a device receives of a value. One that is redistributed for the op crosses before that, unless it is a sum."""
    decisions, placements = plan.decisions, plan.decisions.placements
    if value not in node.operands:
        # A number, of which the op's operands are made again.
        return placements.local_bytes(value, placements.homes[value])
    at = node.operands.index(value)
    move = decisions.at_use.get((node.number, at))
    if move is None or not move.communicates:
        return placements.local_bytes(value, placements.nodes[node.number].wanted[at])
    return placements.local_bytes(value, move.target if move.pending else move.source)


def reason(plan: State, sets: DeviceSets, node: Node) -> str:
    """Why an op runs where it does."""
    if (claim := sets.claims.ops.get(node.number)) is not None and claim.on is sets.ops[node.number]:
        return f"by {plan.cited(claim.tactic)}"
    if (have := sets.priced.get(node.number)) is None:
        return "its operands are there" if node.operands else "it is first read there"
    sizes = ", ".join(f"{of_bytes(size)} on {coordinates(on)}" for on, size in have.items())
    return f"no tactic says where, and of its operands there are {sizes}"


def where_given(plan: State, sets: DeviceSets, value: ValueId) -> str:
    """Why an argument is where it is."""
    claim = sets.claims.arguments.get(value)
    return "it is read there" if claim is None else f"by {plan.cited(claim.tactic)}"


def moved_on(sets: DeviceSets, move: Move) -> Mesh:
    """Where a value is redistributed: a sum where it is made, any other value where it is first read."""
    first = move.uses[0][0] if move.uses and not move.pending else sets.program.end
    return sets.of(move.value) if first == sets.program.end else sets.ops[first]
