"""Chooses which of some ops to place otherwise, so that all that they read, make and compute costs the least.

Each op has two placements: as it is, or otherwise. A value is moved from the layout in which its op produces it to each layout
in which an op reads it. So the price depends on pairs of choices, and the best choice is a minimum cut.

    dot %h %t  ->  sum  ->  ...  ->  dot %d %t   -->   all of them along the vocabulary: only %h and the last sum move
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place
from ..program.program import NO_NODE, Node, NodeId, ValueId
from ..redistribute.kinds.halo import sharers
from ..redistribute.steps import Path
from .choices import Alternative, Apart, Choices, Moving, Use, Want, Ways, sent_over
from .min_cut import ENDLESS, Edge, Network
from .placements import overlaps
from .price import Price, is_slow, seconds, way_of

BYTE = 1 << 20
"""What a byte over a fast link counts in the integers of a network, in which a collective counts 1."""

TRIES = 8
"""How often a choice is repaired before it is given up."""

OTHERWISE, AS_IT_IS = "otherwise", "as it is"

Key = tuple[Want, bool | None]

Moves = dict[Key, list[NodeId]]
"""(wanted layout, choice) -> ops. The value moves to the layout if one of the ops makes the choice: True is its other
placement, False its present one. With None, the value moves in any case."""


class Best(NamedTuple):
    """The option that saves most: its number, those of its ops that are placed otherwise, the seconds that they save."""

    option: int
    ways: Ways
    saved: float
    pays: bool
    """Whether they save enough."""


def best_of(choices: Choices, options: Sequence[Ways], departs: Callable[[int, Ways], bool] | None = None) -> Best | None:
    """The option of which some ops, or all, save the most if they are placed otherwise. None if none saves.

    `departs`: whether ops of an option would leave where the tactics put them, so that they have to save what collectives take
    to start. Without it, anything that costs less pays.
    """
    best: Best | None = None
    for number, ways in enumerate(options):
        sound = [chosen for found in better(choices, ways) if (chosen := _sound(choices, ways, found))]
        before = choices.price(ways, {}) if sound else None
        for chosen in sound:
            assert before is not None
            then = choices.price(ways, chosen, before)
            if then is None:
                continue
            saved = before.seconds - then.seconds
            pays = then < before if departs is None else then.pays(before, departs(number, chosen))
            if then < before and (best is None or (pays, saved) > (best.pays, best.saved)):
                best = Best(number, chosen, saved, pays)
    return best


def take_off(choices: Choices, nodes: Iterable[Node], axes: Set[Place], departs: bool = False) -> bool:
    """Takes axes off ops, or off some of them, if that pays; returns whether it does. `departs`: as in `best_of`."""
    ways = {node.number: Alternative.of(choices.placements.without(node, axes)) for node in nodes}
    best = best_of(choices, [ways], (lambda option, moved: True) if departs else None)
    if best is None or not best.pays:
        return False
    choices.put(best.ways)
    return True


def _sound(choices: Choices, ways: Ways, chosen: Ways) -> Ways:
    """The chosen ops, repaired so that each op that carries a sum reads that sum.

    An op that would carry what it does not read is left out, or placed otherwise with the rest. None are left if an op that has
    no other placement would be wrong, or after `TRIES` repairs.

    dot %a %b carries the sum %a, and %b becomes one too   -->   the op that would carry none is chosen with what makes %b
    """
    for _ in range(TRIES):
        if not (unsound := choices.unsound(chosen)):
            return chosen
        if any(number not in ways for number in unsound):
            break
        kept = {number: way for number, way in chosen.items() if number not in unsound}
        chosen = kept | {number: ways[number] for number in unsound if number not in chosen}
    return {}


def better(choices: Choices, ways: Ways, priced: Set[NodeId] | None = None, least: float = 0) -> Iterator[Ways]:
    """The ops to place otherwise, so that all of them, or those `priced`, cost the least: the others then follow at no cost.

    None of them if that saves fewer seconds than `least`. Two choices where ops that stay and ops that move may want a value in
    one layout: a cut cannot say that they share the move. First it counts for each side, then in any case.

    dot %h %t  ->  exp  ->  ...   with `dot` priced   -->   what %h, %t and the sum would cost, wherever `exp` ran
    """
    cut = _Cut(choices, ways, ways.keys() if priced is None else priced)
    for is_shared in (False, True):
        if not is_shared or cut.is_mixed:
            side = cut.otherwise(least, is_shared)
            yield {number: way for number, way in ways.items() if number in side}


class _Cut:
    """Ops that may be placed otherwise, and the values that the priced ones of them read and produce."""

    def __init__(self, choices: Choices, ways: Ways, priced: Set[NodeId]) -> None:
        self.choices, self.placements, self.program = choices, choices.placements, choices.program
        self.ways, self.priced, self.mesh = ways, priced, choices.program.mesh
        self.units = BYTE * self.mesh.chip.bytes_per_second
        self.is_mixed = False
        """Whether ops that stay and ops that move may want a value in one layout, as the first network has found."""

    def otherwise(self, least: float, is_shared: bool) -> Set[object]:
        """The side of a minimum cut on which the ops are that cost less if they are placed otherwise."""
        network, edges = Network(), self.choices.edges
        network.edge(OTHERWISE, AS_IT_IS, 0)
        reads = self.reads()
        for value, uses in reads.items():
            # Regions overlap: what a value adds to one of them is cached for the others.
            key = is_shared, self.ways.get(self.program.producer[value]), *(self.ways[number] for number, _ in uses)
            if (found := (cached := edges.setdefault(value, {})).get(key)) is None:
                moves, is_mixed = self.moved(value, uses, is_shared)
                found = cached[key] = [*self.added(value, moves)], is_mixed
            self.is_mixed |= found[1]
            network.edges(found[0])
        alone = ((number, self.alone(number)) for number in self.priced)
        network.edges(_unary(number, saved < 0, abs(saved)) for number, saved in alone if saved)
        gains = ((number, self.gain(number, reads)) for number in self.ways.keys() - self.priced)
        network.edges(_unary(number, False, gain) for number, gain in gains if gain)
        return network.source_side(OTHERWISE, AS_IT_IS, round(least * self.units))

    def gain(self, number: NodeId, priced: Container[ValueId]) -> int:
        """What an op that is not priced could save at most: its own work, and what moves now for it and behind it."""
        node, found = self.program.nodes[number], max(self.alone(number), 0)
        for value in node.operands:
            if value not in priced:
                found += self.served(value).get(number, 0)
        for value in node.results:
            if value not in priced:
                found += self.served(value)[NO_NODE]
        return found

    def served(self, value: ValueId) -> dict[NodeId, int]:
        """What the moves of a value cost now: those for each op that reads it, and all of them."""
        if (found := self.choices.served.get(value)) is None:
            found = self.choices.served[value] = {NO_NODE: 0}
            for move in self.choices.moves(value, {}):
                if due := self.due(move):
                    for number in (NO_NODE, *dict.fromkeys(number for number, _ in move.uses)):
                        found[number] = found.get(number, 0) + due
        return found

    def reads(self) -> dict[ValueId, list[Use]]:
        """Maps each value that counts to its uses by ops that may be placed otherwise."""
        nodes = [self.program.nodes[number] for number in self.priced]
        values = dict.fromkeys(value for node in nodes for value in (*node.operands, *node.results))
        reads = {value: list[Use]() for value in values if self.may_move(value)}
        for number in self.ways:
            for position, value in enumerate(self.program.nodes[number].operands):
                if value in reads:
                    reads[value].append((number, position))
        return reads

    def may_move(self, value: ValueId) -> bool:
        """Whether a value is an array, or a sum that its op leaves as it is or otherwise."""
        ways = None, self.ways.get(self.program.producer[value])
        return bool(self.program.shape(value)) or any(self.choices.pending(value, way) for way in ways)

    def alone(self, number: NodeId) -> int:
        """What an op itself saves if it is placed otherwise, wherever the others are.

        With the moves of its results to where tactics put them.
        """
        way, known = self.ways[number], self.choices.alone
        if (found := known.get(way)) is None:
            node = self.program.nodes[number]
            found = known[way] = self.priced_alone(node, None) - self.priced_alone(node, way)
        return found

    def priced_alone(self, node: Node, way: Alternative | None) -> int:
        own, known = self.choices.own(node, self.choices.placed(node, way)), self.choices.costs
        if (found := known.get(own)) is None:
            moves, work = own
            found = known[own] = self.capacity(Price.of(self.mesh, moves, [work]))
        return found + sum(self.due(move) for value in node.results for move in self.choices.settled(value, way))

    def moved(self, value: ValueId, uses: list[Use], is_shared: bool) -> tuple[Moves, bool]:
        """The layouts to which a value moves, and whether ops on both sides want one. `uses`: those by ops that may be placed
        otherwise. `is_shared`: what both sides want is moved in any case."""
        wants, maker = self.choices.wants(value), self.ways.get(self.program.producer[value])
        found, mine, pend = Moves(), dict[Want, int](), self.choices.pending(value, maker)
        for number, position in uses:
            want, way = wants[number, position], self.ways[number]
            mine[want] = mine.get(want, 0) + 1
            found.setdefault((want, False), []).append(number)
            found.setdefault((self.choices.wanted(want, (number, position), way, pend), True), []).append(number)
        always = {want for want, count in self.choices.counted[value].items() if count > mine.get(want, 0)}
        both = {want for want, place in found if place and (want, False) in found} - always
        always |= both if is_shared else set()
        moves = {key: ops for key, ops in found.items() if key[0] not in always}
        return moves | {(want, None): [] for want in always}, bool(both)

    def added(self, value: ValueId, moves: Moves) -> Iterator[Edge]:
        """The edges of the network for the moves of a value.

        A move depends on two choices: that of the op that makes the value, and that of the ops which want the layout. A cut
        can only price choices that differ. What a move costs more if both are the same is taken to be due whatever is wanted,
        and is subtracted from what it costs more if they differ. This is an estimate.
        """
        maker, ends = self.program.producer[value], [self.choices.made(value, None)]
        if maker in self.ways and value not in self.placements.pinned:
            ends.append(self.choices.made(value, self.ways[maker]))
        ways = [(home, *[self.choices.target(value, home, want) for want, _ in moves]) for home in ends]
        # Layers are alike: what moves in the same ways costs the same.
        key, known = (self.program.types[value].dtype, *moves, *ways), self.choices.priced
        if (found := known.get(key)) is None:
            found = known[key] = _apart([self.prices(value, home, dict(zip(moves, to, strict=True))) for home, *to in ways])
        due, prices = found
        yield from _either(maker, *due)
        for ((want, place), ops), (least, differ) in zip(moves.items(), prices, strict=True):
            if place is not None and (differ > 0 or least > 0):
                meets = ops[0] if len(ops) == 1 else (value, want, place)
                # If one of the ops makes this choice, the move happens.
                yield from ((op, meets, ENDLESS) if place else (meets, op, ENDLESS) for op in ops if op != meets)
                yield _unary(meets, place, least)
                if differ > 0:
                    yield _between(meets, maker, place, differ)

    def prices(self, value: ValueId, home: Layout, targets: dict[Key, Layout]) -> dict[Key, int]:
        """Maps each move of a value to its price."""
        found = {key: self.least(value, home, target, key[0].trips) for key, target in targets.items()}
        return found | self.shared(value, home, targets, found) if len(targets) > 1 and any(found.values()) else found

    def shared(self, value: ValueId, home: Layout, targets: dict[Key, Layout], prices: dict[Key, int]) -> dict[Key, int]:
        """The prices of moves that cost less beside others of their group, because a device has received it, or shares it."""
        always = [(want, targets[want, place]) for want, place in targets if place is None]
        found, windows = dict[Key, int](), list[tuple[Key, Path]]()
        for key, target in targets.items():
            if not prices[key]:
                continue
            others = [(want, each) for want, each in always if want.group == key[0].group and each != target]
            if any(not self.placements.misses(value, each, target) for _, each in others):
                found[key] = 0
                continue
            # What moves in any case is a part of it.
            parts = sum(prices[want, None] for want, each in others if not self.placements.misses(value, target, each))
            if key[1] is not None and parts:
                found[key] = max(0, prices[key] - parts)
            elif overlaps(home, target):
                windows.append((key, way_of(self.placements, value, home, target)))
        for numbers, together in sharers([(way, (key[0].group, key[1])) for key, way in windows]):
            # Different devices receive what each move takes, and each has a part of the price.
            group = [windows[number] for number in numbers]
            part = sum(way.bytes for way in together) / sum(way.bytes for _, way in group)
            found |= {key: round(prices[key] * part) for key, _ in group}
        return found

    def due(self, move: Moving) -> int:
        """About what a move costs."""
        return self.least(move.value, move.source, move.target, move.trips)

    def least(self, value: ValueId, source: Layout, target: Layout, trips: int) -> int:
        """About what a move costs: its path is searched only where the device has other parts of the dim."""
        if source is target:
            return 0
        # Layers are alike: what moves in the same way costs the same.
        key, known = (source, target, self.program.types[value].dtype, trips), self.choices.costs
        if (found := known.get(key)) is None:
            received = self.placements.misses(value, source, target) * trips
            slow = received if self.mesh.slow and is_slow(self.mesh, sent_over(source, target)) else 0
            found = known[key] = self.capacity(Price(seconds(self.mesh, received, slow), trips)) if received else 0
        return found

    def capacity(self, price: Price) -> int:
        return round(price.seconds * self.units) + price.collectives


def _apart(prices: Sequence[dict[Key, int]]) -> Apart:
    """The prices of a value's moves as it is made now and, if its op may be placed otherwise, then; as prices for a network."""
    if len(prices) == 1:
        return (0, 0), [(price, 0) for price in prices[0].values()]
    least = {key: min(each[key] for each in prices) for key in prices[0]}
    more = [{key: each[key] - least[key] for key in least} for each in prices]
    same = [sum(each[key] for key in least if key[1] == bool(made)) for made, each in enumerate(more)]
    now, then = (own + sum(each[key] for key in least if key[1] is None) for own, each in zip(same, prices, strict=True))
    return (now, then), [(least[key], more[not key[1]][key] - same[not key[1]]) for key in least]


def _between(node: object, maker: NodeId, otherwise: bool, price: int) -> Edge:
    """An edge that is cut, at this price, if `node` makes the choice `otherwise` and `maker` the opposite one."""
    start, end = (node, maker) if otherwise else (maker, node)
    return start, end, price


def _either(node: object, as_it_is: int, otherwise: int) -> Iterator[Edge]:
    """The edge for a node of which each choice has a price: only their difference counts."""
    if as_it_is != otherwise:
        yield _unary(node, otherwise > as_it_is, abs(otherwise - as_it_is))


def _unary(node: object, otherwise: bool, price: int) -> Edge:
    """An edge that is cut, at this price, if the node makes this choice."""
    start, end = (node, AS_IT_IS) if otherwise else (OTHERWISE, node)
    return start, end, price
