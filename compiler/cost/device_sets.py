"""What a plan on several device sets does on each of them, and what crosses from one to another.

on("block0", stage=0).on("block1", stage=1)   -->   h of block0: 2,048 bytes from stage=0 to stage=1, for the add of block1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, cast

from xdsl.ir import Operation, SSAValue

from ...dialects.ground.amounts import of_bytes
from ...dialects.ground.dtypes import itemsize
from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...dialects.types import ArrayType
from ...rewrites.decide.decide import Decisions
from ...rewrites.decide.device_sets import DeviceSets, coordinates
from ...rewrites.decide.made_again import Ways, axes_between
from ...rewrites.lower.constructors import Global, Globals, Types, on_device, type_of
from ...rewrites.lower.materialise import Writer
from ...rewrites.lower.runs import Change
from ...rewrites.lower.to_flow import WholeGraph
from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import Node, ValueId
from ...rewrites.redistribute.search import path
from ...rewrites.redistribute.steps import Path
from ..gc_pause import without_collector
from ..inputs.lines import SourceLine, at_line, place_of
from ..plan.lowering import decided
from ..plan.source_lines import line_of_op
from ..plan.state import State
from ..views.grouping import grouped
from ..views.listing import Listing, ListingForm
from ..views.view import Cell


@dataclass(frozen=True, slots=True)
class Transfer:
    """A value that crosses from one device set to another: each device there receives `bytes` of it in one call.

    `use` is the op that reads it. `why` says why that runs there. `axes` are those along which it crosses.
    """

    value: str
    bytes: int
    source: str
    target: str
    use: str
    why: str
    line: SourceLine | None
    axes: tuple[str, ...]
    number: ValueId = field(repr=False, compare=False)

    def __str__(self) -> str:
        crosses = f"`{self.value}` from {self.source} to {self.target}: {self.bytes:,} bytes to each device"
        return f"{crosses}, for `{self.use}`{at_line(self.line)}, {self.why}"

    __repr__ = __str__


class _Crossing(NamedTuple):
    """A value, or what was computed of it, that crosses to another device set for an op, and the type with which it arrives."""

    value: ValueId
    node: Node
    source: Mesh
    target: Mesh
    type: ArrayType


class Relaid(NamedTuple):
    """A redistribution on one of two device sets, because what crosses between them has blocks of consecutive elements."""

    value: ValueId
    node: Node
    """The op on the other set that reads the value."""
    source: Mesh
    target: Mesh
    on: Mesh
    """Where it is: on the one, before the value leaves, or on the other, once it is there."""
    path: Path


def transfers(plan: State) -> Listing[Transfer]:
    """The values that cross from one device set to another, in the order in which they are needed."""
    return Listing(plan.once(_transfers), ListingForm("transfers", _COLUMNS, _row, spare=("at",)))


def _transfers(plan: State) -> Sequence[Transfer]:
    """What the plan's graph transfers."""
    if (sets := plan.table.sets) is None:
        return []
    return [_transfer(plan, sets, each) for each in plan.once(_written).crossings]


def relaid(plan: State) -> Sequence[Relaid]:
    """The redistributions that values need because they cross: those of the graph that are no decisions of the plan."""
    return [] if plan.table.sets is None else plan.once(_written).relaid


class Again(NamedTuple):
    """An op that runs on a further set, because that costs less than if what it makes crossed."""

    node: Node
    on: Mesh
    ways: Ways


class _Written(NamedTuple):
    """What crosses in a plan's graph, what is redistributed for that, and what is made again instead."""

    crossings: Sequence[_Crossing]
    relaid: Sequence[Relaid]
    again: Sequence[Again]


def _written(plan: State) -> _Written:
    """Writes the plan's graph, and reads this off it."""
    with without_collector():
        writer = _Writer(decided(plan))
        writer.write()
    return _Written(writer.crossings, writer.relaid, writer.noted)


def made_again(plan: State) -> Sequence[Again]:
    """The ops that run on further sets than their own."""
    return [] if plan.table.sets is None else plan.once(_written).again


def crossing_bytes(plan: State) -> int:
    """The bytes that devices receive from other sets in a call, one device of each set together."""
    return sum(each.bytes for each in plan.once(_transfers))


def crossing_by_axes(plan: State) -> dict[tuple[str, ...], int]:
    """The same bytes by the axes along which they cross."""
    found = grouped(plan.once(_transfers), lambda each: each.axes)
    return {axes: sum(each.bytes for each in some) for axes, some in found.items()}


_COLUMNS = ("value", "from", "to", "bytes", "for", "at", "why")


def _row(each: Transfer) -> Sequence[Cell]:
    return each.value, each.source, each.target, each.bytes, each.use, place_of(each.line), each.why


def _transfer(plan: State, sets: DeviceSets, each: _Crossing) -> Transfer:
    return Transfer(
        plan.source.addresses.names[each.value],
        each.type.local.nbytes,
        coordinates(each.source),
        coordinates(each.target),
        each.node.op_name,
        reason(plan, sets, each.node) if sets.ops[each.node.number] is each.target else "it is made again there",
        line_of_op(plan, each.node),
        axes_between(each.source, each.target),
        each.value,
    )


class _Writer(Writer):
    """Writes a graph, and notes what crosses, what is redistributed for that, and what is made again."""

    def __init__(self, decisions: Decisions) -> None:
        super().__init__(decisions, partial(_Graph, self))
        self.crossings, self.relaid, self.noted = list[_Crossing](), list[Relaid](), list[Again]()
        self.values_of = dict[SSAValue, ValueId]()
        """Each device's part of a value -> the value."""
        self.reader: Node | None = None
        """The op that is written, or for which values are redistributed. What is returned is read where it is made."""

    def define(self, value: ValueId, made: Global) -> None:
        super().define(value, made)
        self.values_of.setdefault(on_device(made), value)

    def op(self, nodes: Sequence[Node]) -> None:
        self.reader = nodes[0]
        super().op(nodes)

    def sliced(self, node: Node, position: int) -> Global:
        self.reader = node
        return super().sliced(node, position)

    def once_more(self, node: Node) -> None:
        assert self.again is not None and self.now is not None, "ops are made again on several device sets"
        reader, self.reader = self.reader, node
        super().once_more(node)
        self.reader = reader
        self.noted.append(Again(node, self.now, self.again.ways[self.now][node.number]))

    def read_by(self, local: SSAValue) -> tuple[ValueId, Node]:
        """The value that crosses, and the op for which it does."""
        assert self.reader is not None, "values cross for an op"
        known = (self.values_of.get(each) for each in reached([local], _operands))
        return next(each for each in known if each is not None), self.reader


def _operands(value: SSAValue) -> Sequence[SSAValue]:
    return value.owner.operands if isinstance(value.owner, Operation) else ()


class _Graph(WholeGraph):
    """A graph that notes what crosses."""

    def __init__(self, notes: _Writer, types: Types) -> None:
        super().__init__(types)
        self.notes = notes
        self.between: tuple[Mesh, Mesh] | None = None
        """The sets between which a value crosses just now."""

    def copied(self, source: Global, sent: Layout, wanted: ArrayType, at: Mesh) -> Global:
        assert self.devices is not None, "values cross between device sets"
        self.between = at, self.devices
        made = super().copied(source, sent, wanted, at)
        self.between = None
        return made

    def change(self, change: Change, locals: Sequence[SSAValue]) -> list[Global]:
        if change.is_transfer and self.between is not None:
            self.notes.crossings.append(_Crossing(*self.notes.read_by(locals[0]), *self.between, change.after[0]))
        return super().change(change, locals)

    def changed_here(self, sources: Globals, targets: Types, way: Path | None) -> Globals:
        if self.between is not None and self.devices is not None:
            (source,), (target,) = sources, targets
            before = type_of(source)
            steps = path(before.layout, target.layout, itemsize(before.dtype))
            self.notes.relaid.append(Relaid(*self.notes.read_by(on_device(source)), *self.between, self.devices, steps))
        return super().changed_here(sources, targets, way)


def reason(plan: State, sets: DeviceSets, node: Node) -> str:
    """Why an op runs where it does."""
    if (claim := sets.claims.ops.get(node.number)) is not None and claim.on is sets.ops[node.number]:
        return f"by {plan.cited(claim.tactic)}"
    if (have := sets.priced.get(node.number)) is None:
        return "its operands are there" if node.operands else "it is first read there"
    sizes = ", ".join(f"{of_bytes(size)} on {coordinates(on)}" for on, size in have.items())
    return f"no tactic says where, and of its operands there are {sizes}"


def cause_of_set(plan: State, on: Mesh, node: Node) -> int:
    """The number of the tactic that puts an op on a set: the one that claims the op, or the first that claims the set."""
    claims = cast(DeviceSets, plan.table.sets).claims
    if (own := claims.ops.get(node.number)) is not None and own.on is on:
        return own.tactic
    return min(each.tactic for each in (*claims.ops.values(), *claims.arguments.values()) if each.on is on)


def where_given(plan: State, sets: DeviceSets, value: ValueId) -> str:
    """Why an argument is where it is."""
    claim = sets.claims.arguments.get(value)
    return "it is read there" if claim is None else f"by {plan.cited(claim.tactic)}"
