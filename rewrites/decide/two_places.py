"""Which of some ops are placed otherwise: the choice with which a device receives the fewest bytes.

Each op is placed as it is or otherwise. A value is moved to each layout in which an op reads it, from the layout in which its
own op makes it. So the bytes depend on pairs of choices, and the best ones are a minimum cut.

    dot %h %t  ->  sum  ->  ...  ->  dot %d %t   -->   all of them along the vocabulary: only %h and the last sum move
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...dialects.layouts import Layout
from ..redistribute.steps import Bytes
from .min_cut import ENDLESS, Network
from .op_layouts import Pend, Placed, Placements
from .pending import Carry
from .stored import is_stored

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


@dataclass(frozen=True, slots=True)
class Otherwise:
    """How an op could be placed, and the sum that its result is then; `carries` if it comes from its operands."""

    placed: Placed
    pend: Pend
    carries: bool


@dataclass(frozen=True, slots=True)
class Want:
    """A use that wants a layout of a value if its op is in one of the two places; None: in any case."""

    layout: Layout
    group: int
    """Uses of one group share what is moved to one layout."""
    op: int
    otherwise: bool | None
    trips: int


class TwoPlaces:
    """Ops that may be placed otherwise, and the values that they read and make."""

    def __init__(self, placements: Placements, carried: Mapping[int, Carry], ways: Mapping[int, Otherwise]) -> None:
        self.placements, self.program = placements, placements.program
        self.carried = carried
        self.ways = ways

    def best(self) -> set[int]:
        """The ops that are placed otherwise; none, if that does not pay."""
        network = Network()
        network.edge(OTHERWISE, AS_IT_IS, 0)
        for value in self.values:
            self.add(network, value)
        side = network.source_side(OTHERWISE, AS_IT_IS)
        chosen = {number for number in self.ways if number in side}
        return chosen if self.received(chosen).pays(self.received(())) else set()

    @cached_property
    def values(self) -> list[int]:
        nodes = (self.program.nodes[number] for number in self.ways)
        return list(dict.fromkeys(value for node in nodes for value in (*node.operands, *node.results)))

    @cached_property
    def wants(self) -> dict[int, list[Want]]:
        """The layouts in which each value is read."""
        return {value: list(self.wanted(value)) for value in self.values}

    def wanted(self, value: int) -> Iterator[Want]:
        program, end = self.program, len(self.program.nodes)
        apart = program.parameter[value] and is_stored(self.placements, value)
        for number, position in self.placements.uses(value):
            group, trips = number if apart else 0, program.likely_trips(program.use_region(number, position))
            carry = self.carried.get(number) if number < end and value in self.placements.sources else None
            now = self.placements.wanted(number, position).with_pending(() if carry is None else carry.pend)
            way = self.ways.get(number)
            yield Want(now, group, number, None if way is None else False, trips)
            if way is not None:
                pend = way.pend if way.carries and self.pend(value) else ()
                yield Want(way.placed.wanted[position].with_pending(pend), group, number, True, trips)

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

    def price(self, value: int, otherwise: bool, want: Want) -> Bytes:
        """What a device receives for a use of the value."""
        return self.placements.received(value, self.home(value, otherwise), want.layout) * want.trips

    def received(self, chosen: Collection[int]) -> Price:
        """What a device receives for all the values if these ops are placed otherwise."""
        bytes: Bytes = 0
        collectives = 0
        for value, wants in self.wants.items():
            home = self.home(value, self.program.producer[value] in chosen)
            moved = ((w.layout, w.group, w.trips) for w in wants if w.otherwise is None or w.otherwise == (w.op in chosen))
            for layout, _, trips in dict.fromkeys(moved):
                way = self.placements.way(value, home, layout)
                bytes += way.bytes * trips
                collectives += way.collectives * trips
        return Price(bytes, collectives)

    def add(self, network: Network, value: int) -> None:
        """Adds what moves of a value to the network.

        A move happens if the value's op is in one place and any of those that want the layout in a certain place. If both are
        the same place, it is taken to happen in any case, and to make a move to the other one cheaper: an estimate.
        """
        maker = self.program.producer[value]
        movable = maker in self.ways
        places = (False, True) if movable else (False,)
        moves = self.together(value)
        same = {
            place: sum((self.price(value, place, w[0]) for k, w in moves.items() if k[3] == place), start=0) for place in places
        }
        for place in places:
            fixed = sum((self.price(value, place, wants[0]) for key, wants in moves.items() if key[3] is None), start=0)
            if movable:
                _unary(network, maker, place, fixed + same[place])
        for key, wants in moves.items():
            other = key[3]
            if other is None:
                continue
            meets = value, *key
            for want in wants:
                # If one of the ops is in its place, the move happens.
                ends = (want.op, meets) if other else (meets, want.op)
                network.edge(*ends, ENDLESS)
            if not movable:
                _unary(network, meets, other, self.price(value, False, wants[0]))
                continue
            price = max(self.price(value, not other, wants[0]) - same[not other], 0)
            ends = (meets, maker) if other else (maker, meets)
            network.edge(*ends, int(price * UNITS))

    def together(self, value: int) -> dict[tuple[Layout, int, int, bool | None], list[Want]]:
        """The wants of a value that one move serves."""
        found: dict[tuple[Layout, int, int, bool | None], list[Want]] = {}
        for want in self.wants[value]:
            found.setdefault((want.layout, want.group, want.trips, want.otherwise), []).append(want)
        return found


def _unary(network: Network, node: object, otherwise: bool, price: Bytes) -> None:
    """What it costs that a node is in a place."""
    if otherwise:
        network.edge(node, AS_IT_IS, int(price * UNITS))
    else:
        network.edge(OTHERWISE, node, int(price * UNITS))
