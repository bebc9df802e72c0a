"""Where each op runs, if tactics put parts of a program on parts of the mesh: a place like an axis, claimed and followed.

An op runs on the device set that is claimed for it, else on that of its operands. If these are on several sets, it runs where
the fewest bytes have to cross; if claims have put them there, that is a conflict. An argument lies where most of what is
computed from it is read. What depends on nothing but numbers and random keys runs where most of it is read, and is made again
on other sets.

    %h = dot %x %w (stage=0);  %y = dot %h %v (stage=1);  %z = tanh %y   -->   %x, %w on stage=0;  %v, %y, %z on stage=1
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain
from typing import NamedTuple

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ..program.program import Control, Node, NodeId, Program, ValueId

SMALL = 32
"""The most bytes of an argument that is a number or a key, and so can be anywhere."""

Bytes = Mapping[Mesh, int]
"""The bytes of an op's operands, or those that are read of a value, by the device sets on which they are."""


class ClaimOfSet(NamedTuple):
    """A device set, and the number of the tactic that claims it."""

    on: Mesh
    tactic: int


@dataclass(frozen=True)
class Claims:
    """What tactics put on device sets: ops, and arguments."""

    ops: Mapping[NodeId, ClaimOfSet] = field(default_factory=dict[NodeId, ClaimOfSet])
    arguments: Mapping[ValueId, ClaimOfSet] = field(default_factory=dict[ValueId, ClaimOfSet])


class Found(NamedTuple):
    """The set of each op and of each argument, and the ops whose operands are on several sets."""

    ops: Sequence[Mesh]
    arguments: Mapping[ValueId, Mesh]
    priced: Mapping[NodeId, Bytes]


@dataclass(frozen=True, eq=False)
class DeviceSets:
    """The device set of each op and of each argument, found when it is first asked for."""

    program: Program
    claims: Claims
    units: Sequence[int]

    def __repr__(self) -> str:
        return f"DeviceSets({', '.join(map(coordinates, self.every))})"

    @cached_property
    def found(self) -> Found:
        return _Sets(self.program, self.claims, self.units).found()

    @property
    def ops(self) -> Sequence[Mesh]:
        return self.found.ops

    @property
    def arguments(self) -> Mapping[ValueId, Mesh]:
        return self.found.arguments

    @property
    def priced(self) -> Mapping[NodeId, Bytes]:
        """The ops without a claim whose operands are on several sets, with the bytes that each set has of them."""
        return self.found.priced

    @cached_property
    def conflicts(self) -> Mapping[NodeId, Mapping[ValueId, ClaimOfSet]]:
        """The ops without a claim that read what claims put on several sets: these operands, each with the claim it follows."""
        return _Sets(self.program, self.claims, self.units).conflicts(self.ops)

    @cached_property
    def every(self) -> list[Mesh]:
        """The sets, in the order of their devices."""
        return sorted({*self.ops, *self.arguments.values()}, key=_number)

    def around(self, entry: Node | Control) -> Mesh:
        """Where an op runs, or all of a loop or a choice."""
        node = next(_nodes(self.program, entry)) if isinstance(entry, Control) else entry
        return self.ops[node.number]

    def of(self, value: ValueId) -> Mesh:
        """Where a value is made."""
        number = self.program.producer[value]
        return self.arguments[value] if number < 0 else self.ops[number]

    def is_apart(self, node: Node) -> bool:
        """Whether an op reads a value of another set. What crosses is no pending sum."""
        return any(self.of(value) is not self.ops[node.number] for value in node.operands)


@cache
def along(on: Mesh) -> Mapping[str, int]:
    """The coordinates of a part of a mesh, on the axes that it has no more."""
    if on.part is None:
        return {}
    whole, numbers = on.part
    found = next(at for number, at in enumerate(whole.coordinates()) if number == numbers[0])
    return {place.name: at for place, at in found.items() if place.name not in on}


def coordinates(on: Mesh) -> str:
    """A part of a mesh, said by its coordinates: `stage=1`."""
    return ", ".join(f"{axis}={at}" for axis, at in along(on).items()) or str(on)


def units(program: Program) -> Sequence[int]:
    """Of each op, the number of what runs on one device set with it: itself, or all of a loop or a choice.

    The values of an op such as a barrier are placed apart, and may be on several sets.
    """
    found = [*range(len(program.nodes))]
    for entry in program.entries()[0]:
        if isinstance(entry, Control):
            every = [node.number for node in _nodes(program, entry)]
            for number in every:
                found[number] = min(every)
    return found


def is_number(program: Program, value: ValueId) -> bool:
    """Whether a value is an argument that is a number or a key."""
    return program.producer[value] < 0 and program.types[value].nbytes <= SMALL


def arriving(lies: Layout, wanted: Layout) -> Layout:
    """The layout in which a value arrives on another set for a use: of consecutive blocks only the part that is wanted."""
    is_part = lies.natural.with_pending(()) is lies and wanted.natural is wanted and lies.covers(wanted)
    return wanted if is_part else lies


def free(program: Program) -> Collection[NodeId]:
    """The ops that depend on nothing but numbers and keys, so that any set can make what they make."""
    small = {value for value in program.arguments if is_number(program, value)}
    found = dict[NodeId, None]()
    for node in program.nodes:
        is_own = node.region or node.is_border or node.signature.once or node.signature.own or node.op_name == "whole"
        if not is_own and all(value in small or program.producer[value] in found for value in node.operands):
            found[node.number] = None
    return found.keys()


def _nodes(program: Program, control: Control) -> Iterator[Node]:
    """All nodes of an op with regions: its borders, and what is in its regions."""
    yield from control.enters
    yield from chain.from_iterable(control.leaves)
    for yields in control.yields:
        yield from (node for node, _ in yields)
    for region in control.regions:
        for entry in program.entries()[region]:
            yield from _nodes(program, entry) if isinstance(entry, Control) else entry


def _number(on: Mesh) -> tuple[int, ...]:
    """The numbers of a set's devices, by which sets are sorted."""
    return (0,) if on.part is None else on.part[1]


class _Sets:
    def __init__(self, program: Program, claims: Claims, unit_of: Sequence[int]) -> None:
        self.program, self.claims, self.unit_of = program, claims, unit_of
        self.nodes = dict[int, list[Node]]()
        """The ops that run on one set together, in program order."""
        for node in program.nodes:
            self.nodes.setdefault(self.unit_of[node.number], []).append(node)
        self.order = sorted(self.nodes, key=lambda unit: self.nodes[unit][0].number)
        self.sets = sorted({each.on for each in (*claims.ops.values(), *claims.arguments.values())}, key=_number)
        self.given = {value: each.on for value, each in claims.arguments.items()}
        self.free = free(program)
        self.claimed = {self.unit_of[number]: each for number, each in claims.ops.items()}

    def found(self) -> Found:
        where, _ = self.forward(self.given)
        needs = self.needs(where)
        arguments = {value: self.most(needs[value]) for value in self.program.arguments if needs.get(value)}
        arguments |= self.given
        where, priced = self.forward(arguments)
        needs = self.needs(where)
        for unit in reversed(self.order):
            if unit not in where:
                made = (needs.get(value, {}) for node in self.nodes[unit] for value in node.results)
                where[unit] = next((self.most(need) for need in made if need), self.sets[0])
        ops = [where[unit] for unit in self.unit_of]
        first = {self.nodes[unit][0].number: bytes for unit, bytes in priced.items()}
        # What nothing reads is where anything runs.
        arguments = dict.fromkeys(self.program.arguments, next(iter(where.values()), self.sets[0])) | arguments
        return Found(ops, arguments, first)

    def forward(self, arguments: Mapping[ValueId, Mesh]) -> tuple[dict[int, Mesh], dict[int, Bytes]]:
        """The set of each unit that has a claim, or an operand on a set; and what those without a claim have on several."""
        where, priced = dict[int, Mesh](), dict[int, Bytes]()
        for unit in self.order:
            if unit in self.claimed:
                where[unit] = self.claimed[unit].on
            if unit in self.claimed or self.nodes[unit][0].number in self.free:
                continue
            have = self.sums((self.at(value, where, arguments), self.bytes(value)) for value in self.outside(unit))
            if have:
                where[unit] = self.most(have)
            if len(have) > 1:
                priced[unit] = have
        return where, priced

    def conflicts(self, ops: Sequence[Mesh]) -> dict[NodeId, Mapping[ValueId, ClaimOfSet]]:
        """The first op of each unit without a claim that reads what claims put on several sets, given where each op runs."""
        found, of = dict[NodeId, Mapping[ValueId, ClaimOfSet]](), dict(self.claims.arguments)
        for unit in self.order:
            first, claim = self.nodes[unit][0].number, self.claimed.get(unit)
            if claim is None and first not in self.free:
                read = {value: of[value] for value in self.outside(unit) if value in of}
                # What makes nothing has no name by which a tactic could claim it.
                if len({each.on for each in read.values()}) > 1 and any(node.results for node in self.nodes[unit]):
                    found[first] = read
                claim = next((each for each in read.values() if each.on is ops[first]), None)
            if claim is not None and first not in self.free:
                of |= dict.fromkeys((value for node in self.nodes[unit] for value in node.results), claim)
        return found

    def at(self, value: ValueId, where: Mapping[int, Mesh], arguments: Mapping[ValueId, Mesh]) -> Mesh | None:
        """Where a value is; None for what can be anywhere."""
        number = self.program.producer[value]
        if number in self.free:
            return None
        return arguments.get(value) if number < 0 else where.get(self.unit_of[number])

    def needs(self, where: Mapping[int, Mesh]) -> dict[ValueId, dict[Mesh, int]]:
        """The bytes that are read of each value on each set, directly or through ops that are on no set yet."""
        found = dict[ValueId, dict[Mesh, int]]()
        for unit in reversed(self.order):
            own = where.get(unit)
            read = (found.get(value, {}) for node in self.nodes[unit] for value in node.results)
            made = self.sums(each for needs in read for each in needs.items())
            for value in self.outside(unit):
                size, needs = self.bytes(value), found.setdefault(value, {})
                for on, bytes in made.items() if own is None else [(own, size)]:
                    needs[on] = needs.get(on, 0) + min(bytes, size)
        return found

    def outside(self, unit: int) -> Iterable[ValueId]:
        """The values from outside that a unit reads."""
        nodes, producer = self.nodes[unit], self.program.producer
        every = dict.fromkeys(value for node in nodes for value in node.operands)
        return [value for value in every if producer[value] < 0 or self.unit_of[producer[value]] != unit]

    def bytes(self, value: ValueId) -> int:
        return self.program.types[value].nbytes

    def sums(self, every: Iterable[tuple[Mesh | None, int]]) -> dict[Mesh, int]:
        found = dict[Mesh, int]()
        for on, bytes in every:
            if on is not None:
                found[on] = found.get(on, 0) + bytes
        return found

    def most(self, bytes: Bytes) -> Mesh:
        """The set with the most bytes; of several, the first one."""
        return max(self.sets, key=lambda on: bytes.get(on, 0))
