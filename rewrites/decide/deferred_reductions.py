"""Pending sums: which ops they move through before they resolve.

A sum over a placed index leaves its result pending. By linearity (`sum x + sum y = sum (x + y)`, and so on) it may move through
later ops. It resolves where that costs the fewest bytes; ties go to fewer collectives, then to the earlier value, but never
between a product and its transpose, which XLA computes as one product. The choice is a minimum cut: a value is cut where it is
resolved, at the cost of the collective.

    %g1{+data}, %g2{+data}, %g = add %g1, %g2   -->   %g{+data}: one all_reduce instead of two

A sum also waits where a sum over other axes is added to it, or a replicated value if another sum is added later. Each term
counts once on the axes on which it is not a sum.

    %y = add %x, %a{+model}; %z = add %y, %b{+model}   -->   %z{+model}: one all_reduce for a block whose parts are parallel
    %z = add %a{+data}, %b{+model}                     -->   %z{+data, +model}: one all_reduce over both axes

A carry is a pending sum if each trip, given a pending sum, returns one. This is assumed first and checked at the end. A
replicated start value counts once.

    scan (%acc = %x) { %a = mul 0.9, %acc; yield (add %a, %g{+data}) }   -->   %acc{+data}, and one all_reduce after the loop
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import prod

from ...dialects.ground.dtypes import divides, itemsize, widens
from ...dialects.ground.monoids import MONOIDS
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis
from ..program.program import Node, Program
from ..redistribute.steps import Bytes, devices, share
from .linearity import linear_in, terms_beside
from .min_cut import ENDLESS, Network
from .placements import OpPlacement, Pend, Placements
from .requirements import counts_once, law

RESOLVED, COUNTED = 1 << 40, 1 << 10
"""Weights of a byte and of a collective: bytes count first, then collectives, then sums resolved ahead of a mere move."""


@dataclass(slots=True)
class Component:
    """Pending values joined by the linear ops between them."""

    values: list[int] = field(default_factory=list[int])
    nodes: list[Node] = field(default_factory=list[Node])


@dataclass(frozen=True, slots=True)
class Carry:
    """An op that a pending sum moves through: the sum, and per operand the axes on which it counts on one device only."""

    pend: Pend
    once: tuple[tuple[int, tuple[MeshAxis, ...]], ...] = ()


def through(placements: Placements) -> dict[int, Carry]:
    """Returns the ops that a pending sum moves through."""
    reach = _Reach(placements, frozenset(), {})
    while broken := reach.broken():
        # A carry that collects sums over more axes than was assumed is assumed to have them all.
        refused = reach.refused if reach.wider else reach.refused | broken
        reach = _Reach(placements, refused, {**reach.given, **reach.wider})
    chosen: dict[int, Carry] = {}
    for component in reach.components():
        chosen.update(_cheapest(placements, reach, component))
    return chosen


def makers(placements: Placements, carried: Mapping[int, Carry], value: int) -> list[Node]:
    """The ops that compute the terms of a pending value, upstream of the ops through which the sum moves.

    %z = add %a{+model}, %b{+model}   -->   the ops that make %a and %b
    """
    found, ahead, seen = dict[int, Node](), [value], {value}
    for each in ahead:
        number = placements.program.producer[each]
        if number in carried:
            operands = placements.program.nodes[number].operands
            # A loop carries its own results too.
            more = dict.fromkeys(v for v in operands if v in placements.sources and v not in seen)
            ahead += more
            seen |= more.keys()
        elif number >= 0:
            found[number] = placements.program.nodes[number]
    return list(found.values())


class _Reach:
    """How far pending sums could move: the values that may be pending, and the ops that may carry them."""

    def __init__(self, placements: Placements, refused: frozenset[int], given: dict[int, Pend]) -> None:
        self.placements = placements
        self.given = given
        """Loop -> the sum that its carry is assumed to be, where this has more axes than the sum that is first added to it."""
        self.assumed: dict[int, Pend] = {}
        self.wider: dict[int, Pend] = {}
        """Carries for which the next attempt assumes a sum over more axes."""
        self.refused = refused
        """Loop carries that are not pending sums under any assumption, and ops at which no sum may wait."""
        self.loops: dict[int, Node] = {}
        """Carries assumed to be pending sums.

        This holds if each trip ends with a pending sum and no reader needs it resolved.
        """
        self.program: Program = placements.program
        self.pending: dict[int, Pend] = dict(placements.sources)
        self.layouts = {v: placements.home(v) for v in self.pending}
        self.carriers: dict[int, Carry] = {}
        self.bare = set(self.pending)
        """Pending values that are sums of sources alone, without factors."""
        self.stopped: list[int] = []
        """Ops at which a sum stops because they are not linear in it."""
        self.relying: dict[int, frozenset[int]] = {}
        """Op -> its operands that are sums only if a loop carry that they are linear in is one."""
        self.hanging = _hanging(placements.program, refused)
        self.meeting: dict[int, bool] = {}
        """Ops -> whether their result is added to another bare sum later."""
        self.waited: dict[int, Pend] = {}
        """Op -> the sum that it carries, where its terms may be pending on fewer axes."""
        self.hinders: set[int] = set()
        """Ops at which a sum must not wait, because it would reach an op that already carries another sum."""
        self.spread(self.pending)
        self.wait()

    def spread(self, values: Iterable[int]) -> bool:
        """Visits the users of these values and of all that become pending; returns whether no op lost the sum it carried."""
        holds = True
        heap = sorted({number for value in values for number, _ in self.program.uses[value]})
        seen = set(heap)
        while heap:
            node = self.program.nodes[heapq.heappop(heap)]
            carry = self.carried(node)
            if carry is None:
                holds = holds and node.number not in self.carriers
                continue
            ahead = self.assume(node, carry.pend)
            # The carries on which the op's linearity depends may have been assumed to be pending on more axes.
            again = self.carried(node) if ahead else carry
            for number in ahead if again is None else (*ahead, *self.carry(node, again)):
                if number not in seen:
                    seen.add(number)
                    heapq.heappush(heap, number)
        return holds

    def carry(self, node: Node, carry: Carry) -> list[int]:
        """Lets the op carry its sum, and returns the ops that read its result."""
        self.carriers[node.number] = carry
        if node.kind == "carry":
            self.loops[node.number] = node
        for value in node.results:
            self.pending[value] = carry.pend
            self.layouts[value] = self.placements.reduced(node, carry.pend).produced[0]
        once = dict(carry.once)
        if all(v in self.bare or at in once or self.program.zero[v] for at, v in enumerate(node.operands)):
            self.bare.update(node.results)
        return [number for value in node.results for number, _ in self.program.uses[value]]

    def assume(self, node: Node, pend: Pend) -> list[int]:
        """Assumes pending sums for the loop carries that the op needs for linearity, and returns the ops that read them."""
        found, loops = list[int](), self.carried_on(node)
        if not loops:
            return found
        positions = frozenset([at for at, value in enumerate(node.operands) if value in self.pending])
        if node.kind != "carry" and self.linear(node, positions, self.program.zeros(node)):
            return found
        self.relying[node.number] = loops
        for loop in (each for at in sorted(loops) for each in self.roots(node.operands[at])):
            if loop.results[0] in self.pending:
                continue
            self.loops[loop.number] = loop
            own = self.assumed[loop.number] = self.given.get(loop.number, pend)
            self.bare.update(loop.results)
            for value in loop.results:
                self.pending[value] = own
                self.layouts[value] = self.placements.reduced(loop, own).produced[0]
            found += [*self.assume(loop, own), *(number for number, _ in self.program.uses[loop.results[0]])]
        return found

    def carried_on(self, node: Node) -> frozenset[int]:
        """The operands that are linear in a loop carry, and so may be pending sums."""
        # Called for every op that carries a sum; most programs have no loop.
        if not self.hanging:
            return frozenset()
        return frozenset([at for at, v in enumerate(node.operands) if v in self.hanging and v not in self.pending])

    def roots(self, value: int) -> list[Node]:
        """The loop carries from which a value is computed linearly."""
        ahead, found = [value], dict[int, Node]()
        while ahead:
            node = self.program.nodes[self.program.producer[ahead.pop()]]
            if node.number not in found:
                found[node.number] = node
                ahead += [node.operands[at] for at in self.hanging[node.results[0]]]
        return [node for node in found.values() if node.kind == "carry"]

    def broken(self) -> frozenset[int]:
        """The carries whose assumption does not hold, and the ops at which a sum may not wait."""
        for number, loop in self.loops.items():
            carry = self.carried(loop)
            if carry is not None:
                self.carriers[number] = carry
                assumed = self.assumed.get(number, carry.pend)
                wider = _together((assumed, carry.pend))
                if wider is not None and wider != assumed:
                    self.wider[number] = wider
        lost = {
            loop.number
            for number, positions in self.relying.items()
            for value in (self.program.nodes[number].operands[at] for at in positions)
            if number in self.carriers and value not in self.pending
            for loop in self.roots(value)
        }
        found = {number for number, loop in self.loops.items() if not self.holds(loop)} | self.hinders | lost
        ahead = {loop.number for loop in self.loops.values() if loop.number not in found and loop.operands[1] in self.hanging}
        # A carry computed from other carries alone is not a sum if they are not: `c, d = d, tanh(c)`.
        while more := {number for number in ahead if self.hangs_on(self.program.nodes[number].operands[1], found)}:
            found |= more
            ahead -= more
        return frozenset(found)

    def hangs_on(self, value: int, carries: set[int]) -> bool:
        """Whether a value is computed from these carries alone."""
        return all(root.number in carries for root in self.roots(value))

    def holds(self, loop: Node) -> bool:
        """Whether each trip ends with a pending sum, and every reader of the carry can also take a pending sum."""
        readers = {number for number, _ in self.program.uses[loop.results[0]]} | {loop.number}
        found = ((self.carriers.get(number), self.carried(self.program.nodes[number])) for number in sorted(readers))
        return loop.number in self.carriers and all(before is None or before == now for before, now in found)

    def wait(self) -> None:
        """Lets a bare sum wait where it meets sums over other axes, or a replicated value and later another sum.

        Each term then counts once, and two collectives become one. A sum with factors does not wait: it may reach several
        ops, and is one collective only if it resolves before them.
        """
        heap = sorted(self.stopped)
        self.stopped = []
        while heap:
            node = self.program.nodes[heapq.heappop(heap)]
            carry = self.waiting(node) if node.number not in self.carriers else None
            if carry is not None:
                self.carry(node, carry)
                if not self.spread(node.results):
                    self.hinders.add(node.number)
                for number in self.stopped:
                    heapq.heappush(heap, number)
                self.stopped = []

    def waiting(self, node: Node) -> Carry | None:
        """The sum that an op could carry if it adds sums over several axes, or a replicated value.

        Each term counts once elsewhere.
        """
        sums = {at: self.pending[value] for at, value in enumerate(node.operands) if value in self.bare}
        if not sums:
            return None
        parts = list(dict.fromkeys(sums.values()))
        pend = _together(parts)
        if pend is None or (len(parts) == 1 and not self.meets(node)) or law(counts_once(0, ())) is None:
            return None
        zeros = self.program.zeros(node)
        whole = frozenset(at for at, each in sums.items() if each == pend)
        others = frozenset(range(len(node.operands))) - whole - zeros
        if terms_beside(node.signature.instance.definition, whole, zeros, others, self.is_field(node)) != others:
            return None
        self.waited[node.number] = pend
        return self.carried(node)

    def is_field(self, node: Node) -> bool:
        return divides(self.program.types[node.results[0]].dtype)

    def meets(self, node: Node) -> bool:
        """Whether the op's result is added to another bare sum, directly or behind other additions."""
        passed, found = list[int](), False
        while node.number not in self.meeting:
            passed.append(node.number)
            uses = self.placements.uses(node.results[0]) if len(node.results) == 1 else []
            if len(uses) != 1 or uses[0][0] == len(self.program.nodes):
                break
            node, own = self.program.nodes[uses[0][0]], frozenset({uses[0][1]})
            if len(node.results) != 1:
                break
            definition, zeros, field = node.signature.instance.definition, self.program.zeros(node), self.is_field(node)
            sums = frozenset(at for at, value in enumerate(node.operands) if value in self.bare) - own
            if sums:
                found = linear_in(definition, sums | own, zeros, field)
                break
            others = frozenset(range(len(node.operands))) - own - zeros
            if terms_beside(definition, own, zeros, others, field) != others:
                break
        found = found or self.meeting.get(node.number, False)
        self.meeting.update(dict.fromkeys(passed, found))
        return found

    def carried(self, node: Node) -> Carry | None:
        """The sum that the op could carry: it is linear in its pending operands, and their layouts need no other move."""
        program, given = self.program, self.waited.get(node.number)
        if node.results[1:] and not (node.kind == "carry" and is_alone(program, node)):
            return None
        if not node.results or node.results[0] in self.placements.fixed:
            return None
        positions = frozenset([at for at, value in enumerate(node.operands) if value in self.pending])
        if not positions or node.number in self.refused:
            return None
        first = node.operands[min(positions)]
        pend = given or self.pending[first]
        if node.signature.shifts and len(program.uses[first]) > 1:
            # A sum is resolved once, before several ops take their parts of it.
            return None
        before, after = program.types[first].dtype, program.types[node.results[0]].dtype
        if not all(MONOIDS[each.monoid].linear for each in pend) or not widens(before, after):
            return None
        if (given or len(positions) > 1) and not all(self.is_part(node.operands[at], pend, given) for at in positions):
            self.stopped.append(node.number)
            return None
        zeros = self.program.zeros(node)
        once = frozenset[int]()
        if given is not None:
            once = frozenset(range(len(node.operands))) - positions - zeros
        elif node.kind == "carry" and law(counts_once(0, ())) is not None:
            once = frozenset({0}) - positions - zeros
        if not self.linear(node, positions | once, zeros) and not self.linear(node, positions, zeros | self.carried_on(node)):
            self.stopped.append(node.number)
            return None
        if not self.placements.keeps(node, pend):
            return None
        placed = self.placements.reduced(node, pend)
        if not self.undisturbed(node, positions, placed, pend):
            return None
        if given is None and not once:
            return Carry(pend)
        counted = ((at, self.missing(node.operands[at], pend)) for at in sorted(positions | once))
        return Carry(pend, tuple((at, axes) for at, axes in counted if axes))

    def is_part(self, value: int, pend: Pend, given: Pend | None) -> bool:
        """Whether a pending operand is the sum that an op carries, or may be a part of it."""
        own = self.pending[value]
        return own == pend or (given is not None and set(own) <= set(pend))

    def missing(self, value: int, pend: Pend) -> tuple[MeshAxis, ...]:
        """The axes of `pend` on which a term is not pending."""
        own = self.pending.get(value, ())
        return tuple(each.axis for each in pend if each not in own)

    def linear(self, node: Node, sums: frozenset[int], zeros: frozenset[int]) -> bool:
        field = divides(self.program.types[node.operands[min(sums)]].dtype)
        return linear_in(node.signature.instance.definition, sums, zeros, field)

    def undisturbed(self, node: Node, positions: frozenset[int], placed: OpPlacement, pend: Pend) -> bool:
        """Whether the op can run on the operands in their own layouts, without its placement on the pending axes."""
        axes = {each.axis for each in pend}
        if placed.pending[0]:
            return False
        for position, value in enumerate(node.operands):
            if position in positions:
                if self.layouts[value] != placed.wanted[position] or not axes.isdisjoint(self.layouts[value].axes):
                    return False
            elif not axes.isdisjoint(self.placements.home(value).axes) and not axes.isdisjoint(self.placements.axes(node)):
                return False
        return True

    def components(self) -> list[Component]:
        """Groups sums that can meet. A source without a linear reader resolves at once and needs no cut."""
        group: dict[int, Component] = {}
        for number in sorted(self.carriers):
            node = self.program.nodes[number]
            values = [v for v in dict.fromkeys((*node.operands, *node.results)) if v in self.pending]
            parts = list({id(group[v]): group[v] for v in values if v in group}.values())
            # The largest group absorbs the others, so that a long chain of sums is not quadratic.
            joined = max(parts, key=lambda part: len(part.values), default=Component())
            for part in parts:
                if part is not joined:
                    joined.values += part.values
                    joined.nodes += part.nodes
                    group.update(dict.fromkeys(part.values, joined))
            fresh = [v for v in values if v not in group]
            joined.values += fresh
            joined.nodes.append(node)
            group.update(dict.fromkeys(fresh, joined))
        return list({id(component): component for component in group.values()}.values())


def _together(sums: Iterable[Pend]) -> Pend | None:
    """The sum with the axes of all of these, major axis first; None if two of them reduce one axis in different ways."""
    every = {each for pend in sums for each in pend}
    if len({each.axis for each in every}) < len(every):
        return None
    return tuple(sorted(every, key=lambda each: -each.axis.stride))


def is_alone(program: Program, carry: Node) -> bool:
    """Whether only the body of a loop reads a carry, and not its condition."""
    return not any(program.is_read(value) for value in carry.results[1:])


def _hanging(program: Program, refused: frozenset[int]) -> dict[int, tuple[int, ...]]:
    """The values that are linear in a loop carry -> the operands of their ops that are.

    %a = mul 0.9, %acc   -->   %acc: (), %a: (1,)
    """
    found: dict[int, tuple[int, ...]] = {}
    if not program.has_regions:
        return found
    for node in program.nodes:
        if node.kind == "carry":
            if node.number not in refused and is_alone(program, node):
                found[node.results[0]] = ()
        elif not node.is_border and len(node.results) == 1:
            positions = tuple([at for at, value in enumerate(node.operands) if value in found])
            if positions and is_linear(program, node, frozenset(positions)):
                found[node.results[0]] = positions
    return found


def is_linear(program: Program, node: Node, sums: frozenset[int]) -> bool:
    """Whether an op is linear in these operands together."""
    before, after = (program.types[value].dtype for value in (node.operands[min(sums)], node.results[0]))
    return widens(before, after) and linear_in(node.signature.instance.definition, sums, program.zeros(node), divides(before))


def _cheapest(placements: Placements, reach: _Reach, component: Component) -> dict[int, Carry]:
    """Cuts the component: the edge `v` -> `(v, "kept")` costs the collective. An op carries if it is on the source's side."""
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
                network.edge(node.results[0], value)
    side = network.source_side("pending", "resolved")
    return {node.number: reach.carriers[node.number] for node in component.nodes if node.results[0] in side}


def _result(reach: _Reach, number: int) -> int:
    return reach.program.nodes[number].results[0]


def _price(placements: Placements, reach: _Reach, value: int) -> int:
    """The cost to resolve the value: a reduce_scatter over the axes on which all uses need slices, then an all_reduce."""
    pend = reach.pending[value]
    wanted = [placements.wanted(number, position).axes for number, position in placements.uses(value)]
    sliced = frozenset({each.axis for each in pend}.intersection(*wanted) if wanted else ())
    width, trips = itemsize(reach.program.types[value].dtype), placements.trips(value)
    bytes = _received(reach.layouts[value], pend, sliced) * width * trips
    # A sum that each trip scatters is stored in parts. It does not wait for fewer collectives.
    return int(bytes * RESOLVED) + COUNTED * (1 if sliced else trips) + _is_moved(reach, value)


def _is_moved(reach: _Reach, value: int) -> bool:
    """Whether a sum's only reader moves its elements and could carry it: a product and its transpose are one op for XLA."""
    uses, number = reach.placements.uses(value), reach.program.producer[value]
    if len(uses) != 1 or uses[0][0] not in reach.carriers or not reach.program.nodes[uses[0][0]].passes_on:
        return False
    if number in reach.carriers:
        return reach.program.nodes[number].passes_on
    return any(index.monoid is not None for index in reach.program.nodes[number].signature.instance.indices)


@lru_cache(maxsize=1 << 14)
def _received(layout: Layout, pend: Pend, sliced: frozenset[MeshAxis]) -> Bytes:
    """The elements that a device receives to resolve a value in this layout, and to slice it on some of the axes."""
    size, parts = prod(layout.local_shape), devices(sliced)
    rest = devices({each.axis for each in pend} - sliced)
    bytes = share(size, parts) + Fraction(share(size, rest, times=2), parts)
    # Whole numbers are added and compared much faster.
    return bytes.numerator if bytes.denominator == 1 else bytes
