"""What a device receives: the one price by which ways to place some ops are compared.

A value moves from the layout in which its op produces it to each layout in which an op reads it, in each trip of the loops
around the reader. Bytes count first, then collectives.

    %w {data*8, 64}, read whole by one op of a loop of 32 trips   -->   the bytes of 32 all_gathers, and 32 collectives
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, Self

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis
from ..program.program import NO_VALUE, Node, NodeId, ValueId
from ..redistribute.search import Path
from ..redistribute.steps import Bytes
from .deferred_reductions import DeferredReduction
from .placements import OpPlacement, Placements, Unreduced
from .table import Claim

Use = tuple[NodeId, int]

START = 1 << 15
"""The bytes that a device could receive in the time that a collective takes to start: about 0.7 microseconds at 45 GB/s."""


class Price(NamedTuple):
    """The bytes that a device receives, and the number of collectives."""

    bytes: Bytes
    collectives: int

    @classmethod
    def of(cls, ways: Iterable[tuple[Path, int]]) -> Self:
        """The price of paths, each taken so many times."""
        every = [*ways]
        return cls(sum(way.bytes * times for way, times in every), sum(way.collectives * times for way, times in every))

    def pays(self, before: Price) -> bool:
        """Whether this receives enough fewer bytes than `before` to pay for the collectives that it adds."""
        return before.bytes - self.bytes > START * max(1, self.collectives - before.collectives)


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """Another placement of an op. Its result is then the sum `pend`; with `carries`, it takes that sum from its operands.

    Compared by identity, so that what follows from one can be cached under it.
    """

    placed: OpPlacement
    pend: Unreduced = ()
    carries: bool = False


class Want(NamedTuple):
    """A layout that uses of a value want, and how often it is read. Uses of one group share a move to the same layout."""

    layout: Layout
    group: int
    trips: int


class Reads:
    """The layouts that uses want under the present placements. They are cached until an op moves."""

    def __init__(self, placements: Placements, carried: Mapping[NodeId, DeferredReduction]) -> None:
        self.placements, self.program, self.carried = placements, placements.program, carried
        self.known: dict[ValueId, dict[Use, Want]] = {}
        self.counted: dict[ValueId, Counter[Want]] = {}

    def forget(self) -> None:
        """Forgets what was cached, because ops have moved."""
        self.known.clear()
        self.counted.clear()

    def wants(self, value: ValueId) -> dict[Use, Want]:
        """Maps each use of a value to the layout that it wants."""
        if (found := self.known.get(value)) is None:
            apart = self.program.parameter[value] and is_stored(self.placements, value)
            found = {use: self.want(value, use, apart) for use in self.placements.uses(value)}
            self.known[value], self.counted[value] = found, Counter(found.values())
        return found

    def want(self, value: ValueId, use: Use, apart: bool) -> Want:
        carry = self.carried.get(use[0]) if value in self.placements.sources else None
        layout = self.placements.wanted(*use).with_pending(() if carry is None else carry.pend)
        region = self.program.use_region(*use)
        return Want(layout, use[0] if apart else -region - 1, self.program.likely_trips(region))

    def prices(self, after: Mapping[NodeId, Alternative]) -> tuple[Price, Price]:
        """What a device receives for all that these ops read or make: as they are placed, and if they are placed otherwise."""
        nodes = [self.program.nodes[number] for number in after]
        values = dict.fromkeys(value for node in nodes for value in (*node.operands, *node.results))

        def price(after: Mapping[NodeId, Alternative]) -> Price:
            ways = [way for value in values for way in self.ways(value, after)]
            return Price.of([*ways, *(way for node in nodes for way in self.merges(node, after))])

        return price({}), price(after)

    def ways(self, value: ValueId, after: Mapping[NodeId, Alternative]) -> Iterator[tuple[Path, int]]:
        """How a value moves from the layout in which it is made to each layout in which it is read, and how often."""
        number, way, home = self.program.producer[value], self.placements.way, self.placements.pinned.get(value)
        maker = after.get(number)
        made = self.made(value, maker)
        if home is not None:
            produced = self.made(value, Alternative(self.placements.nodes[number])) if maker is None else made
            yield way(value, produced, home), self.placements.trips(value)
            made = home
        pend = () if maker is None else maker.pend
        wants = {
            want if (reader := after.get(use[0])) is None else self.wanted(want, use, reader, pend)
            for use, want in self.wants(value).items()
        }
        for want in wants:
            yield way(value, made, want.layout), want.trips

    def made(self, value: ValueId, maker: Alternative | None) -> Layout:
        """The layout in which an op makes a value, with the sum that it is; None: the op as it is placed."""
        if maker is None:
            return self.placements.with_sums(value)
        at = self.program.made_by(value).results.index(value)
        return maker.placed.produced[at].with_pending(maker.pend)

    def wanted(self, want: Want, use: Use, reader: Alternative, pend: Unreduced) -> Want:
        """The layout that a use wants of a value that is this sum, if the op that reads it is placed otherwise."""
        layout = reader.placed.wanted[use[1]].with_pending(pend and reader.pend if reader.carries else ())
        return want._replace(layout=layout)

    def merges(self, node: Node, after: Mapping[NodeId, Alternative]) -> Iterator[tuple[Path, int]]:
        """The merge of the blocks that an op sorts."""
        placed = after[node.number].placed if node.number in after else self.placements.nodes[node.number]
        if (step := placed.merged) is not None:
            yield Path((step,), step.bytes), self.program.likely_trips(node.region)


def put_if_fewer(placements: Placements, after: Mapping[NodeId, Alternative]) -> bool:
    """Places ops otherwise if a device then receives fewer bytes; returns whether it does."""
    before, then = Reads(placements, {}).prices(after)
    is_fewer = then.bytes < before.bytes
    for number, way in after.items() if is_fewer else ():
        placements.put_otherwise(placements.program.nodes[number], way.placed)
    return is_fewer


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
