"""Pending sums: which ops they move through before they resolve.

A sum over a placed index leaves its result pending. By linearity (`sum x + sum y = sum (x + y)`, and so on) it may move
through the ops behind it; it resolves where that costs the fewest bytes, ties to fewer collectives, then earlier. The
choice is a minimum cut: a value is cut where it is resolved, at the price of the collective.

    %g1{+data}, %g2{+data}, %g = add %g1, %g2   -->   %g{+data}: one all_reduce instead of two
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from ..dialects.precision import divides, widens
from .cut import ENDLESS, Network
from .linearity import linear_in
from .placement import Tile
from .placing import Pend, Placed, Placements, without
from .program import Node, Program

RESOLVED = 1 << 20
"""Scales bytes over counts: fewer bytes first, then fewer collectives."""


@dataclass(slots=True)
class Component:
    """Pending values joined by the linear ops between them."""

    values: list[int] = field(default_factory=list[int])
    nodes: list[Node] = field(default_factory=list[Node])


def through(placements: Placements) -> dict[int, Pend]:
    """The ops that a pending sum moves through, each with the pending axes it carries."""
    reach = _Reach(placements)
    chosen: dict[int, Pend] = {}
    for component in reach.components():
        chosen.update(_cheapest(placements, reach, component))
    return chosen


class _Reach:
    """How far pending sums could move: values that may be pending, ops that may carry them."""

    def __init__(self, placements: Placements) -> None:
        self.placements = placements
        self.program: Program = placements.program
        self.pending: dict[int, Pend] = dict(placements.sources)
        self.tiles: dict[int, tuple[Tile, ...]] = {v: placements.home(v) for v in self.pending}
        self.carriers: dict[int, Pend] = {}
        self.spread()

    def spread(self) -> None:
        heap = sorted({number for value in self.pending for number, _ in self.program.uses[value]})
        seen = set(heap)
        while heap:
            node = self.program.nodes[heapq.heappop(heap)]
            pend = self.carried(node)
            if pend is None:
                continue
            self.carriers[node.number] = pend
            (value,) = node.results
            self.pending[value] = pend
            self.tiles[value] = self.placements.reduced(node, pend).produced[0]
            for number, _ in self.program.uses[value]:
                if number not in seen:
                    seen.add(number)
                    heapq.heappush(heap, number)

    def carried(self, node: Node) -> Pend | None:
        """The pending axes that the op could carry, if it is linear in its pending operands and needs nothing else moved."""
        program = self.program
        if len(node.results) != 1 or node.is_border or node.results[0] in self.placements.fixed:
            return None
        positions = frozenset(p for p, value in enumerate(node.operands) if value in self.pending)
        kinds = {self.pending[node.operands[p]] for p in positions}
        if len(kinds) != 1:
            return None
        (pend,) = kinds
        zeros = frozenset(p for p, value in enumerate(node.operands) if program.zero[value])
        before, after = program.types[node.operands[min(positions)]].dtype, program.types[node.results[0]].dtype
        if any(each.monoid != "add" for each in pend) or not widens(before, after):
            return None
        if not linear_in(node.signature.instance.definition, positions, zeros, divides(before)):
            return None
        placed = self.placements.reduced(node, pend)
        return pend if self.undisturbed(node, positions, placed, pend) else None

    def undisturbed(self, node: Node, positions: frozenset[int], placed: Placed, pend: Pend) -> bool:
        """Whether the op can run on the operands as they lie, with the pending axes taken from it."""
        axes = {each.axis for each in pend}
        if placed.pending[0]:
            return False
        for position, value in enumerate(node.operands):
            if position in positions:
                if self.tiles[value] != placed.wanted[position]:
                    return False
            elif any(tile[0] in axes for tile in self.placements.home(value)):
                return False
        return True

    def components(self) -> list[Component]:
        """Group what can meet; a source that nothing linear reads resolves at once and needs no cut."""
        group: dict[int, Component] = {}
        for number in sorted(self.carriers):
            node = self.program.nodes[number]
            joined = Component()
            parts = [group[v] for v in node.operands if v in group]
            fresh = [v for v in dict.fromkeys(node.operands) if v in self.pending and v not in group]
            for part in {id(part): part for part in parts}.values():
                joined.values += part.values
                joined.nodes += part.nodes
            joined.values += [*fresh, node.results[0]]
            joined.nodes.append(node)
            for value in joined.values:
                group[value] = joined
        return list({id(component): component for component in group.values()}.values())


def _cheapest(placements: Placements, reach: _Reach, component: Component) -> dict[int, Pend]:
    """Cut the component: `v` pending -> `(v, "kept")` costs the collective; an op carries if it is on the source's side."""
    network = Network()
    for value in component.values:
        network.edge(value, (value, "kept"), _price(placements, reach, value))
        if value in placements.sources:
            network.edge("pending", value)
        for number, _ in placements.uses(value):
            carrier = number in reach.carriers
            network.edge((value, "kept"), _result(reach, number) if carrier else "resolved", ENDLESS)
    for node in component.nodes:
        for value in node.operands:
            if value in reach.pending:
                network.edge(node.results[0], value, ENDLESS)
    side = network.source_side("pending", "resolved")
    return {node.number: reach.carriers[node.number] for node in component.nodes if node.results[0] in side}


def _result(reach: _Reach, number: int) -> int:
    return reach.program.nodes[number].results[0]


def _price(placements: Placements, reach: _Reach, value: int) -> int:
    """Bytes received to resolve the value: a reduce_scatter if all its uses want it sliced, else an all_reduce."""
    pend = reach.pending[value]
    axes = {each.axis for each in pend}
    wanted = [placements.wanted(number, position) for number, position in placements.uses(value)]
    sliced = bool(wanted) and all(axes <= {tile[0] for tile in tiles} for tiles in wanted)
    group = 1
    for axis in axes:
        group *= placements.mesh[axis]
    local = placements.local_bytes(value, without(reach.tiles[value], axes))
    times = (1 if sliced else 2) * placements.trips(value)
    return times * local * (group - 1) * RESOLVED // group + 1
