"""Which of some ops are placed otherwise: the choice with which a device receives the fewest bytes.

Each op is placed as it is or otherwise. A value is moved to each layout in which an op reads it, from the layout in which its
own op makes it. So the bytes depend on pairs of choices, and the best ones are a minimum cut.

    dot %h %t  ->  sum  ->  ...  ->  dot %d %t   -->   all of them along the vocabulary: only %h and the last sum move
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...dialects.layouts import Layout
from ..redistribute.steps import Bytes
from .deferred_reductions import Carry
from .min_cut import ENDLESS, Network
from .placements import OpPlacement, Pend, Placements
from .regather import is_stored

UNITS = 1 << 10
"""Scales bytes, which may be fractions, to the integers of a network."""

START = 1 << 15
"""The bytes that a device could receive in the time that a collective takes to start: about 0.7 microseconds at 45 GB/s."""

OTHERWISE, AS_IT_IS = "otherwise", "as it is"


class Price(NamedTuple):
    """The bytes that a device receives, and by how many collectives."""

    bytes: Bytes
    collectives: int

    def pays(self, before: Price) -> bool:
        """Whether so many fewer bytes are received than before that it is worth the collectives that are started."""
        return before.bytes - self.bytes > START * max(1, self.collectives - before.collectives)


@dataclass(frozen=True, slots=True, eq=False)
class Otherwise:
    """How an op could be placed, and the sum that its result is then; `carries` if it comes from its operands.

    What two ops could do is never equal, so that what follows from it is kept by it.
    """

    placed: OpPlacement
    pend: Pend
    carries: bool


class Want(NamedTuple):
    """A layout in which a value is read, and how often. Uses of one group share what is moved to one layout."""

    layout: Layout
    group: int
    trips: int


Edge = tuple[object, object, int]

Moves = dict[tuple[Want, bool | None], list[int]]
"""What a value is moved to if one of these ops is in this place: otherwise, or as it is; None: in any case."""


class AsItIs:
    """The layouts in which values are read where their ops are now: each value is asked once, for all that is tried."""

    def __init__(self, placements: Placements, carried: Mapping[int, Carry]) -> None:
        self.placements, self.program, self.carried = placements, placements.program, carried
        self.known: dict[int, dict[tuple[int, int], Want]] = {}
        self.counted: dict[int, Counter[Want]] = {}
        self.edges: dict[tuple[int, Otherwise | None, *tuple[Otherwise, ...]], list[Edge]] = {}
        """A value, what its op could do, and what the ops could do that read it -> what this adds to a network."""

    def forget(self) -> None:
        """Ops have moved."""
        self.known.clear()
        self.counted.clear()
        self.edges.clear()

    def wants(self, value: int) -> dict[tuple[int, int], Want]:
        """What each use of a value wants."""
        if (found := self.known.get(value)) is None:
            apart = self.is_stored(value)
            found = {use: self.want(value, use, apart) for use in self.placements.uses(value)}
            self.known[value], self.counted[value] = found, Counter(found.values())
        return found

    def want(self, value: int, use: tuple[int, int], apart: bool) -> Want:
        carry = self.carried.get(use[0]) if value in self.placements.sources else None
        layout = self.placements.wanted(*use).with_pending(() if carry is None else carry.pend)
        return Want(layout, use[0] if apart else 0, self.program.likely_trips(self.program.use_region(*use)))

    def is_stored(self, value: int) -> bool:
        """Whether each op that reads the value gathers it for itself."""
        return self.program.parameter[value] and is_stored(self.placements, value)


class TwoPlaces:
    """Ops that may be placed otherwise, and the values that they read and make."""

    def __init__(self, now: AsItIs, ways: Mapping[int, Otherwise]) -> None:
        self.now, self.placements, self.program = now, now.placements, now.program
        self.ways = ways

    def best(self) -> set[int]:
        """The ops that are placed otherwise; none, if that does not pay."""
        network, edges = Network(), self.now.edges
        network.edge(OTHERWISE, AS_IT_IS, 0)
        for value, uses in self.reads.items():
            # Regions overlap: what one of them tells of a value is not worked out again.
            key = value, self.ways.get(self.program.producer[value]), *(self.ways[number] for number, _ in uses)
            if (found := edges.get(key)) is None:
                found = edges[key] = list(self.added(value, self.moved(value, uses)))
            for edge in found:
                network.edge(*edge)
        side = network.source_side(OTHERWISE, AS_IT_IS)
        chosen = {number for number in self.ways if number in side}
        return chosen if chosen and self.received(chosen).pays(self.received(())) else set()

    @cached_property
    def reads(self) -> dict[int, list[tuple[int, int]]]:
        """The values, with their uses by ops that may be placed otherwise."""
        reads = dict[int, list[tuple[int, int]]]()
        for number in self.ways:
            node = self.program.nodes[number]
            for position, value in enumerate(node.operands):
                reads.setdefault(value, []).append((number, position))
            for value in node.results:
                reads.setdefault(value, [])
        return reads

    @cached_property
    def moves(self) -> dict[int, Moves]:
        """What each value is moved to."""
        return {value: self.moved(value, uses) for value, uses in self.reads.items()}

    def moved(self, value: int, uses: list[tuple[int, int]]) -> Moves:
        """What a value is moved to, if these of its uses are by ops that may be placed otherwise."""
        wants, found, pend = self.now.wants(value), Moves(), self.pend(value)
        others = self.now.counted[value].copy()
        for number, position in uses:
            want, way = wants[number, position], self.ways[number]
            others[want] -= 1
            after = way.placed.wanted[position].with_pending(pend and way.pend if way.carries else ())
            found.setdefault((want, False), []).append(number)
            found.setdefault((want._replace(layout=after), True), []).append(number)
        return found | {(want, None): [] for want, count in others.items() if count}

    def pend(self, value: int) -> Pend:
        """The sum that a value is if its op is placed otherwise."""
        way = self.ways.get(self.program.producer[value])
        return () if way is None else way.pend

    def home(self, value: int, otherwise: bool) -> Layout:
        """The layout in which a value is made."""
        if not otherwise:
            return self.placements.with_sums(value)
        number = self.program.producer[value]
        at = self.program.nodes[number].results.index(value)
        return self.ways[number].placed.produced[at].with_pending(self.ways[number].pend)

    def received(self, chosen: Collection[int]) -> Price:
        """What a device receives for all the values if these ops are placed otherwise."""
        bytes: Bytes = 0
        collectives = 0
        for value, moves in self.moves.items():
            home = self.home(value, self.program.producer[value] in chosen)
            for want in {w for (w, place), ops in moves.items() if place is None or any((op in chosen) == place for op in ops)}:
                way = self.placements.way(value, home, want.layout)
                bytes += way.bytes * want.trips
                collectives += way.collectives * want.trips
        return Price(bytes, collectives)

    def added(self, value: int, moves: Moves) -> Iterator[Edge]:
        """What the moves of a value add to the network.

        A move happens if the value's op is in one place and any of those that want the layout in a certain place. If both are
        the same place, it is taken to happen in any case, and to make a move to the other one cheaper: an estimate.
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
                # If one of the ops is in its place, the move happens.
                yield from ((op, meets, ENDLESS) if place else (meets, op, ENDLESS) for op in ops if op != meets)
                yield _between(meets, maker, place, price) if movable else _unary(meets, place, price)

    def prices(self, value: int, otherwise: bool, moves: Moves) -> dict[tuple[Want, bool | None], Bytes]:
        """What a device receives for each move of a value."""
        home = self.home(value, otherwise)
        return {key: self.placements.received(value, home, key[0].layout) * key[0].trips for key in moves}


def _between(node: object, maker: int, otherwise: bool, price: Bytes) -> Edge:
    """What it costs that a node is in a place, and the op that makes the value is in the other one."""
    start, end = (node, maker) if otherwise else (maker, node)
    return start, end, int(price * UNITS)


def _unary(node: object, otherwise: bool, price: Bytes) -> Edge:
    """What it costs that a node is in a place."""
    start, end = (node, AS_IT_IS) if otherwise else (OTHERWISE, node)
    return start, end, int(price * UNITS)
