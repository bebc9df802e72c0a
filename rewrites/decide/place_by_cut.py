"""Chooses which of some ops to place otherwise, so that a device receives the fewest bytes.

Each op has two placements: as it is, or otherwise. A value is moved from the layout in which its op produces it to each layout
in which an op reads it. So the bytes depend on pairs of choices, and the best choice is a minimum cut.

    dot %h %t  ->  sum  ->  ...  ->  dot %d %t   -->   all of them along the vocabulary: only %h and the last sum move
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...dialects.layouts import Layout
from ..program.program import NodeId, ValueId
from ..redistribute.steps import Bytes
from .deferred_reductions import DeferredReduction
from .min_cut import ENDLESS, Network
from .placements import OpPlacement, Placements, Unreduced
from .regather import is_stored

UNITS = 1 << 10
"""Scales bytes, which may be fractions, to the integers of a network."""

START = 1 << 15
"""The bytes that a device could receive in the time that a collective takes to start: about 0.7 microseconds at 45 GB/s."""

OTHERWISE, AS_IT_IS = "otherwise", "as it is"


class CutPrice(NamedTuple):
    """The bytes that a device receives, and the number of collectives."""

    bytes: Bytes
    collectives: int

    def pays(self, before: CutPrice) -> bool:
        """Whether this receives enough fewer bytes than `before` to pay for the collectives that it adds."""
        return before.bytes - self.bytes > START * max(1, self.collectives - before.collectives)


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """Another placement of an op. Its result is then the sum `pend`; with `carries`, it takes that sum from its operands.

    Compared by identity, so that what follows from one can be cached under it.
    """

    placed: OpPlacement
    pend: Unreduced
    carries: bool


class Want(NamedTuple):
    """A layout that uses of a value want, and how often it is read. Uses of one group share a move to the same layout."""

    layout: Layout
    group: NodeId | None
    trips: int


Edge = tuple[object, object, int]

Moves = dict[tuple[Want, bool | None], list[NodeId]]
"""(wanted layout, choice) -> ops. The value moves to the layout if one of the ops makes the choice: True is its other
placement, False its present one. With None, the value moves in any case."""


class AsItIs:
    """The layouts that uses want under the present placements. They are cached until an op moves."""

    def __init__(self, placements: Placements, carried: Mapping[NodeId, DeferredReduction]) -> None:
        self.placements, self.program, self.carried = placements, placements.program, carried
        self.known: dict[ValueId, dict[tuple[NodeId, int], Want]] = {}
        self.counted: dict[ValueId, Counter[Want]] = {}
        self.edges: dict[tuple[ValueId, Alternative | None, *tuple[Alternative, ...]], list[Edge]] = {}
        """A value, its op's other placement and those of the ops that read it -> the edges that the value adds to a network."""

    def forget(self) -> None:
        """Forgets what was cached, because ops have moved."""
        self.known.clear()
        self.counted.clear()
        self.edges.clear()

    def wants(self, value: ValueId) -> dict[tuple[NodeId, int], Want]:
        """Maps each use of a value to the layout that it wants."""
        if (found := self.known.get(value)) is None:
            apart = self.is_stored(value)
            found = {use: self.want(value, use, apart) for use in self.placements.uses(value)}
            self.known[value], self.counted[value] = found, Counter(found.values())
        return found

    def want(self, value: ValueId, use: tuple[NodeId, int], apart: bool) -> Want:
        carry = self.carried.get(use[0]) if value in self.placements.sources else None
        layout = self.placements.wanted(*use).with_pending(() if carry is None else carry.pend)
        return Want(layout, use[0] if apart else None, self.program.likely_trips(self.program.use_region(*use)))

    def is_stored(self, value: ValueId) -> bool:
        """Whether each op that reads the value gathers it for itself."""
        return self.program.parameter[value] and is_stored(self.placements, value)


class TwoPlaces:
    """Ops that may be placed otherwise, and the values that they read and produce."""

    def __init__(self, now: AsItIs, ways: Mapping[NodeId, Alternative]) -> None:
        self.now, self.placements, self.program = now, now.placements, now.program
        self.ways = ways

    def best(self) -> set[NodeId]:
        """Returns the ops to place otherwise; empty if that does not pay."""
        network, edges = Network(), self.now.edges
        network.edge(OTHERWISE, AS_IT_IS, 0)
        for value, uses in self.reads.items():
            # Regions overlap: what a value adds to one of them is cached for the others.
            key = value, self.ways.get(self.program.producer[value]), *(self.ways[number] for number, _ in uses)
            if (found := edges.get(key)) is None:
                found = edges[key] = list(self.added(value, self.moved(value, uses)))
            for edge in found:
                network.edge(*edge)
        side = network.source_side(OTHERWISE, AS_IT_IS)
        chosen = {number for number in self.ways if number in side}
        return chosen if chosen and self.received(chosen).pays(self.received(())) else set()

    @cached_property
    def reads(self) -> dict[ValueId, list[tuple[NodeId, int]]]:
        """Maps each value to its uses by ops that may be placed otherwise."""
        reads = dict[ValueId, list[tuple[NodeId, int]]]()
        for number in self.ways:
            node = self.program.nodes[number]
            for position, value in enumerate(node.operands):
                reads.setdefault(value, []).append((number, position))
            for value in node.results:
                reads.setdefault(value, [])
        return reads

    @cached_property
    def moves(self) -> dict[ValueId, Moves]:
        """Maps each value to the layouts to which it moves, by the choices of ops."""
        return {value: self.moved(value, uses) for value, uses in self.reads.items()}

    def moved(self, value: ValueId, uses: list[tuple[NodeId, int]]) -> Moves:
        """The layouts to which a value moves. `uses` are its uses by ops that may be placed otherwise."""
        wants, found, pend = self.now.wants(value), Moves(), self.pend(value)
        others = self.now.counted[value].copy()
        for number, position in uses:
            want, way = wants[number, position], self.ways[number]
            others[want] -= 1
            after = way.placed.wanted[position].with_pending(pend and way.pend if way.carries else ())
            found.setdefault((want, False), []).append(number)
            found.setdefault((want._replace(layout=after), True), []).append(number)
        return found | {(want, None): [] for want, count in others.items() if count}

    def pend(self, value: ValueId) -> Unreduced:
        """The pending sum of a value if its op has the other placement."""
        way = self.ways.get(self.program.producer[value])
        return () if way is None else way.pend

    def home(self, value: ValueId, otherwise: bool) -> Layout:
        """The layout in which a value is produced."""
        if not otherwise:
            return self.placements.with_sums(value)
        number = self.program.producer[value]
        at = self.program.nodes[number].results.index(value)
        return self.ways[number].placed.produced[at].with_pending(self.ways[number].pend)

    def received(self, chosen: Collection[NodeId]) -> CutPrice:
        """The price of all moves if exactly the ops in `chosen` have their other placement."""
        bytes: Bytes = 0
        collectives = 0
        for value, moves in self.moves.items():
            home = self.home(value, self.program.producer[value] in chosen)
            for want in {w for (w, place), ops in moves.items() if place is None or any((op in chosen) == place for op in ops)}:
                way = self.placements.way(value, home, want.layout)
                bytes += way.bytes * want.trips
                collectives += way.collectives * want.trips
        return CutPrice(bytes, collectives)

    def added(self, value: ValueId, moves: Moves) -> Iterator[Edge]:
        """The edges of the network for the moves of a value.

        A move depends on two choices: that of the op that makes the value, and that of the ops which want the layout. A cut
        can only price choices that differ. If both must be the same, the move is taken to happen in any case, and its price is
        subtracted from that of the other move. This is an estimate.
        """
        maker = self.program.producer[value]
        movable = maker in self.ways
        prices = {made: self.prices(value, made, moves) for made in ((False, True) if movable else (False,))}
        same = {made: sum(price for (_, place), price in each.items() if place == made) for made, each in prices.items()}
        for made, each in prices.items() if movable else ():
            yield _unary(maker, made, same[made] + sum(price for (_, place), price in each.items() if place is None))
        for (want, place), ops in moves.items():
            if place is None:
                continue
            made = movable and not place
            price = prices[made][want, place] - (same[made] if movable else 0)
            if price > 0:
                meets = ops[0] if len(ops) == 1 else (value, want, place)
                # If one of the ops makes this choice, the move happens.
                yield from ((op, meets, ENDLESS) if place else (meets, op, ENDLESS) for op in ops if op != meets)
                yield _between(meets, maker, place, price) if movable else _unary(meets, place, price)

    def prices(self, value: ValueId, otherwise: bool, moves: Moves) -> dict[tuple[Want, bool | None], Bytes]:
        """Maps each move of a value to the bytes that a device receives."""
        home = self.home(value, otherwise)
        return {key: self.placements.received(value, home, key[0].layout) * key[0].trips for key in moves}


def _between(node: object, maker: NodeId, otherwise: bool, price: Bytes) -> Edge:
    """An edge that is cut, at this price, if `node` makes the choice `otherwise` and `maker` the opposite one."""
    start, end = (node, maker) if otherwise else (maker, node)
    return start, end, int(price * UNITS)


def _unary(node: object, otherwise: bool, price: Bytes) -> Edge:
    """An edge that is cut, at this price, if the node makes this choice."""
    start, end = (node, AS_IT_IS) if otherwise else (OTHERWISE, node)
    return start, end, int(price * UNITS)
