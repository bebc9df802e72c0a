"""Chooses which of some ops to place otherwise, so that a device receives the fewest bytes.

Each op has two placements: as it is, or otherwise. A value is moved from the layout in which its op produces it to each layout
in which an op reads it. So the bytes depend on pairs of choices, and the best choice is a minimum cut.

    dot %h %t  ->  sum  ->  ...  ->  dot %d %t   -->   all of them along the vocabulary: only %h and the last sum move
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from ..program.program import NodeId, ValueId
from ..redistribute.steps import Bytes
from .deferred_reductions import DeferredReduction
from .min_cut import ENDLESS, Network
from .placements import Placements
from .price import Alternative, Reads, Want

UNITS = 1 << 10
"""Scales bytes, which may be fractions, to the integers of a network."""

OTHERWISE, AS_IT_IS = "otherwise", "as it is"


Edge = tuple[object, object, int]

Moves = dict[tuple[Want, bool | None], list[NodeId]]
"""(wanted layout, choice) -> ops. The value moves to the layout if one of the ops makes the choice: True is its other
placement, False its present one. With None, the value moves in any case."""


class AsItIs(Reads):
    """The layouts that uses want under the present placements, and the edges for them, cached until an op moves."""

    def __init__(self, placements: Placements, carried: Mapping[NodeId, DeferredReduction]) -> None:
        super().__init__(placements, carried)
        self.edges: dict[tuple[ValueId, Alternative | None, *tuple[Alternative, ...]], list[Edge]] = {}
        """A value, its op's other placement and those of the ops that read it -> the edges that the value adds to a network."""

    def forget(self) -> None:
        super().forget()
        self.edges.clear()


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
        before, then = self.now.prices({number: self.ways[number] for number in chosen})
        return chosen if then.pays(before) else set()

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

    def moved(self, value: ValueId, uses: list[tuple[NodeId, int]]) -> Moves:
        """The layouts to which a value moves. `uses` are its uses by ops that may be placed otherwise."""
        wants, found, maker = self.now.wants(value), Moves(), self.ways.get(self.program.producer[value])
        pend = () if maker is None else maker.pend
        others = self.now.counted[value].copy()
        for number, position in uses:
            want, way = wants[number, position], self.ways[number]
            others[want] -= 1
            found.setdefault((want, False), []).append(number)
            found.setdefault((self.now.wanted(want, (number, position), way, pend), True), []).append(number)
        return found | {(want, None): [] for want, count in others.items() if count}

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
        home = self.now.made(value, self.ways[self.program.producer[value]] if otherwise else None)
        return {key: self.placements.received(value, home, key[0].layout) * key[0].trips for key in moves}


def _between(node: object, maker: NodeId, otherwise: bool, price: Bytes) -> Edge:
    """An edge that is cut, at this price, if `node` makes the choice `otherwise` and `maker` the opposite one."""
    start, end = (node, maker) if otherwise else (maker, node)
    return start, end, int(price * UNITS)


def _unary(node: object, otherwise: bool, price: Bytes) -> Edge:
    """An edge that is cut, at this price, if the node makes this choice."""
    start, end = (node, AS_IT_IS) if otherwise else (OTHERWISE, node)
    return start, end, int(price * UNITS)
