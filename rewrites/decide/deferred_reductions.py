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

A sum of sums is one sum: an op that makes a sum carries another one beside it, if that costs less.

    %y = sum %x{+data} over rows on `model`   -->   %y{+data, +model}: one all_reduce of what is left after both sums

A carry is a pending sum if each trip returns one, given that it receives one: a greatest fixpoint, in which each value is at
first a sum over no axes. A replicated value that it starts from counts once.

    scan (%acc = %x) { %a = mul 0.9, %acc; yield (add %a, %g{+data}) }   -->   %acc{+data}, and one all_reduce after the loop
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import compress
from math import prod

from ...dialects.definitions.requirement_terms import counts_once
from ...dialects.ground.monoids import MONOIDS
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Loop, Place
from ..program.breadth_first import reached
from ..program.in_order import InOrder
from ..program.program import Node, NodeId, Program, ValueId
from ..program.union_find import UnionFind
from ..redistribute.steps import Bytes, devices, share
from .linearity import Dtypes, linear_in, terms_beside
from .min_cut import ENDLESS, Network
from .placements import OpPlacement, Placements, Unreduced, merged_sum
from .requirements import law

NO_NUMBERS, NO_NODES = frozenset[int](), frozenset[NodeId]()

RESOLVE = -1
"""Stands for a use of a sum that takes it resolved."""

RESOLVED, COUNTED = 1 << 40, 1 << 10
"""Weights of a byte and of a collective: bytes count first, then collectives, then sums resolved ahead of a mere move."""


@dataclass(frozen=True, slots=True)
class DeferredReduction:
    """An op that a pending sum moves through: the sum, and per operand the axes on which it counts on one device only.

    An operand may be pending over more axes than the sum. It resolves over these before the op.
    """

    pend: Unreduced
    once: tuple[tuple[int, tuple[Place, ...]], ...] = ()


def through(placements: Placements) -> dict[NodeId, DeferredReduction]:
    """Returns the ops that a pending sum moves through."""
    program = placements.program
    loops = (node for node in program.nodes if node.op_name == "carry") if program.has_regions else ()
    # Each value is a sum over no axes. A carry becomes one over more of them, or none at all, until no trip says otherwise.
    assumed: dict[NodeId, Unreduced] = {node.number: () for node in loops if is_alone(program, node)}
    plain = _cheapest(placements, assumed, NO_NODES)
    both = plain.growing()
    best = min(plain, _cheapest(placements, assumed, both), key=_Reach.cost) if both else plain
    return {number: best.carriers[number] for number in sorted(best.chosen)}


def _cheapest(placements: Placements, assumed: dict[NodeId, Unreduced], both: Set[NodeId]) -> _Reach:
    """The ops that a sum moves through. `both`: those that may carry one and make one, which are then one sum."""
    reach = _Reach(placements, assumed, set(), both)
    while (returned := reach.returned()) != reach.assumed or reach.hinders:
        reach = _Reach(placements, returned, reach.refused | reach.hinders, both)
    reach.cut()
    return reach


def makers(placements: Placements, carried: Mapping[NodeId, DeferredReduction], value: ValueId) -> list[Node]:
    """The ops that compute the terms of a pending value, upstream of the ops through which the sum moves.

    %z = add %a{+model}, %b{+model}   -->   the ops that make %a and %b
    """
    program = placements.program

    def terms(each: ValueId) -> Iterable[ValueId]:
        # A loop carries its own results too.
        return filter(placements.sources.__contains__, program.made_of(each)) if program.producer[each] in carried else ()

    numbers = dict.fromkeys(program.producer[each] for each in reached([value], terms))
    makes = (number >= 0 and (number not in carried or any(placements.nodes[number].pending)) for number in numbers)
    return [program.nodes[number] for number in compress(numbers, makes)]


class _Reach:
    """One pass along the program: how far pending sums could move, given the sums that loops are assumed to carry."""

    def __init__(
        self, placements: Placements, assumed: dict[NodeId, Unreduced], refused: set[NodeId], both: Set[NodeId]
    ) -> None:
        self.placements, self.program = placements, placements.program
        self.both, self.making = both, set[NodeId]()
        """The ops that make a sum and may carry another one with it, and those that could."""
        self.chosen = set[NodeId]()
        """The ops that carry a sum."""
        self.resolved = set[ValueId]()
        """The sums that are resolved for ops that read them."""
        self.assumed = assumed
        """The sums that carries of loops are, by the carry's node."""
        self.refused = refused
        """Ops at which no sum may wait."""
        self.hinders = set[NodeId]()
        """More of these: the sum would reach an op that already carries another one."""
        self.pending: dict[ValueId, Unreduced] = dict(placements.sources)
        self.layouts = {value: placements.homes[value] for value in self.pending}
        self.carriers: dict[NodeId, DeferredReduction] = {}
        self.hanging = set[ValueId]()
        """Values that are linear in what a loop carries, and so may become sums: each is a sum over no axes."""
        self.demanded: dict[NodeId, Unreduced] = {}
        """Sums that carries have to be, because an op is linear only together with them."""
        self.stopped: list[NodeId] = []
        """Ops at which a sum stops because they are not linear in it."""
        self.meeting: dict[NodeId, bool] = {}
        """Ops -> whether their result is added to another bare sum later."""
        self.waited: dict[NodeId, Unreduced] = {}
        """Op -> the sum that it carries, where its terms may be pending on fewer axes."""
        self.prices = dict[object, int]()
        """What it costs to resolve a sum, for those that differ."""
        self.bare = set(self.pending)
        """Sums of sources and carries alone, without factors."""
        for number, pend in assumed.items():
            self.bare.add(self.program.nodes[number].results[0])
            self.put(self.program.nodes[number], pend)
        self.spread([*self.pending, *self.hanging])
        self.wait()

    def put(self, node: Node, pend: Unreduced, once: Collection[int] = ()) -> None:
        """Records that the op's result is this sum. The operands in `once` count on one iteration only."""
        if all(v in self.bare or at in once or self.program.zero[v] for at, v in enumerate(node.operands)):
            self.bare.update(node.results)
        if pend:
            placed = self.placements.reduced(node, pend)
            made = placed.with_sum(pend)
            assert made is not None, "`grows` asks for this"
            for value in node.results:
                self.pending[value], self.layouts[value] = made, placed.produced[0]
        else:
            self.hanging.add(node.results[0])

    def spread(self, values: Iterable[ValueId]) -> bool:
        """Visits the users of these values and of all that become pending; returns whether no op lost the sum it carried."""
        holds = True
        ahead = InOrder(number for value in values for number, _ in self.program.uses[value])
        for number in ahead:
            node = self.program.nodes[number]
            if node.op_name == "carry":
                # What it is within the loop is assumed.
                continue
            if (carry := self.carried(node)) is not None:
                self.carry(node, carry)
            else:
                holds = holds and node.number not in self.carriers
                if not self.hangs(node):
                    continue
            for value in node.results:
                ahead.update([number for number, _ in self.program.uses[value]])
        return holds

    def carry(self, node: Node, carry: DeferredReduction) -> None:
        """Lets the op carry its sum."""
        self.carriers[node.number] = carry
        self.put(node, carry.pend, dict(carry.once))

    def hangs(self, node: Node) -> bool:
        """Whether the op is linear in the carries of loops. If so, whether its result is a sum depends on theirs."""
        positions = node.positions(self.hanging) if self.hanging else NO_NUMBERS
        found = bool(positions) and len(node.results) == 1 and is_linear(self.program, node, positions)
        if found:
            self.put(node, ())
        return found

    def demand(self, values: Iterable[ValueId], pend: Unreduced) -> None:
        """Requires that the carries on which these values depend are sums."""
        for node in self.program.upstream(values, lambda node: node.results[0] in self.hanging):
            if node.op_name == "carry":
                self.demanded.setdefault(node.number, pend)

    def returned(self) -> dict[NodeId, Unreduced]:
        """The assumed sums of carries, without those that a trip does not return."""
        found = dict[NodeId, Unreduced]()
        ends = [self.program.nodes[number] for number in self.assumed]
        for number, carry in [(node.number, self.carried(node) or self.waiting(node)) for node in ends]:
            own = self.assumed[number]
            if carry is None and (own or self.program.nodes[number].operands[1] not in self.hanging):
                continue
            every = own, self.demanded.get(number, ()), () if carry is None else carry.pend
            pend = merged_sum(every)
            if pend is not None and (carry is None or pend != own or carry.pend == own):
                found[number] = pend
            if carry is not None:
                self.carriers[number] = carry
        return found

    def wait(self) -> None:
        """Lets a bare sum wait where it meets sums over other axes, or a replicated value and later another sum.

        Each term then counts once, and two collectives become one. A sum with factors does not wait: it may reach several
        ops, and is one collective only if it resolves before them.
        """
        ahead, self.stopped = InOrder(self.stopped), []
        for node in map(self.program.nodes.__getitem__, ahead):
            carry = self.waiting(node) if node.number not in self.carriers else None
            if carry is not None:
                self.carry(node, carry)
                if not self.spread(node.results):
                    self.hinders.add(node.number)
                for number in self.stopped:
                    ahead.add(number)
                self.stopped = []

    def waiting(self, node: Node) -> DeferredReduction | None:
        """The sum that an op could carry if it adds sums over several axes, or a replicated value.

        Each term counts once elsewhere.
        """
        sums = {at: self.pending[value] for at, value in enumerate(node.operands) if self.is_bare(value)}
        if not sums:
            return None
        parts, zeros = list(dict.fromkeys(sums.values())), self.program.zeros(node)
        # A sum over a loop waits for no term that is whole on the loop: what comes after the sum is not computed in trips.
        every = [sums.get(at, ()) for at in range(len(node.operands)) if at not in zeros]
        pend = tuple(
            each for each in merged_sum(parts) or () if not isinstance(each.axis, Loop) or all(each in own for own in every)
        )
        if not pend or (len(parts) == 1 and not self.meets(node)) or law(counts_once(0, ())) is None:
            return None
        whole = frozenset(at for at, each in sums.items() if each == pend)
        others = frozenset(range(len(node.operands))) - whole - zeros
        if terms_beside(node.signature.definition, whole, zeros, others, dtypes(self.program, node, frozenset(sums))) != others:
            return None
        self.waited[node.number] = pend
        return self.carried(node)

    def is_bare(self, value: ValueId) -> bool:
        return value in self.pending and value in self.bare

    def meets(self, node: Node) -> bool:
        """Whether the op's result is added to another bare sum, directly or behind other additions."""
        passed, found = list[NodeId](), False
        while node.number not in self.meeting:
            passed.append(node.number)
            uses = self.placements.uses(node.results[0]) if len(node.results) == 1 else []
            if len(uses) != 1 or uses[0][0] == self.program.end:
                break
            node, own = self.program.nodes[uses[0][0]], frozenset({uses[0][1]})
            if len(node.results) != 1:
                break
            definition, zeros = node.signature.definition, self.program.zeros(node)
            dtype = self.program.types[node.results[0]].dtype
            sums = frozenset(at for at, value in enumerate(node.operands) if self.is_bare(value)) - own
            if sums:
                found = linear_in(definition, sums | own, zeros, (dtype, dtype))
                break
            others = frozenset(range(len(node.operands))) - own - zeros
            if terms_beside(definition, own, zeros, others, (dtype, dtype)) != others:
                break
        found = found or self.meeting.get(node.number, False)
        self.meeting.update(dict.fromkeys(passed, found))
        return found

    def carried(self, node: Node) -> DeferredReduction | None:
        """The sum that the op could carry, if it is linear in its pending operands and they need no other move."""
        program, given = self.program, self.waited.get(node.number)
        if node.results[1:] and not (node.op_name == "carry" and is_alone(program, node)):
            return None
        if not node.results or node.results[0] in self.placements.pinned:
            return None
        positions = node.positions(self.pending)
        if not positions or node.number in self.refused or self.placements.table.is_apart(node):
            return None
        first = node.operands[min(positions)]
        pend = given or self.pending[first]
        if node.signature.shifts and len(program.uses[first]) > 1:
            # A sum is resolved once, before several ops take their parts of it.
            return None
        if not is_sum(pend):
            return None
        if (given or len(positions) > 1) and not all(self.is_part(node.operands[at], pend, given) for at in positions):
            self.stopped.append(node.number)
            return None
        zeros = program.zeros(node)
        once = self.once(node) - positions - zeros
        hanging = node.positions(self.hanging) if self.hanging else NO_NUMBERS
        alone = bool(once or hanging) and self.linear(node, positions, zeros | hanging)
        if not alone and not self.linear(node, positions | once, zeros):
            self.stopped.append(node.number)
            return None
        if not self.placements.keeps(node, pend):
            return None
        placed = self.placements.reduced(node, pend)
        if not self.undisturbed(node, positions, placed, pend) or (placed.pending[0] and not self.grows(node, placed, pend)):
            return None
        if hanging and (node.op_name == "carry" or not self.linear(node, positions, zeros)):
            self.demand([node.operands[at] for at in sorted(hanging)], pend)
        if given is None and not once:
            return DeferredReduction(pend)
        terms = ((at, self.pending.get(node.operands[at], ())) for at in sorted(positions | once))
        counted = ((at, tuple(each.axis for each in pend if each not in own)) for at, own in terms)
        return DeferredReduction(pend, tuple((at, axes) for at, axes in counted if axes))

    def grows(self, node: Node, placed: OpPlacement, pend: Unreduced) -> bool:
        """Whether an op that makes a sum itself may carry another one. Notes that it could."""
        if placed.with_sum(pend) is None or node.results[0] not in self.placements.sources:
            return False
        self.making.add(node.number)
        return node.number in self.both

    def once(self, node: Node) -> frozenset[int]:
        """The operands of an op that may count on one iteration only."""
        if node.number in self.waited:
            return frozenset(range(len(node.operands)))
        return frozenset({0}) if node.op_name == "carry" and law(counts_once(0, ())) is not None else NO_NUMBERS

    def is_part(self, value: ValueId, pend: Unreduced, given: Unreduced | None) -> bool:
        """Whether a pending operand is the sum that an op carries, or may be a part of it."""
        own = self.pending[value]
        return own == pend or (given is not None and all(each in pend or isinstance(each.axis, Loop) for each in own))

    def linear(self, node: Node, sums: frozenset[int], zeros: frozenset[int]) -> bool:
        return linear_in(node.signature.definition, sums, zeros, dtypes(self.program, node, sums))

    def undisturbed(self, node: Node, positions: frozenset[int], placed: OpPlacement, pend: Unreduced) -> bool:
        """Whether the op can run on its operands as they lie, if it is not placed on the pending axes."""
        axes = {each.axis for each in pend}
        for position, value in enumerate(node.operands):
            if position in positions:
                if self.layouts[value] != placed.wanted[position] or not axes.isdisjoint(self.layouts[value].axes):
                    return False
            elif not axes.isdisjoint(self.placements.homes[value].axes) and not axes.isdisjoint(self.placements.axes(node)):
                return False
        return True

    def growing(self) -> set[NodeId]:
        """The ops that make a sum and could carry others.

        These have to cost less if they are resolved only where no op could carry them.
        """
        nodes, able = map(self.program.nodes.__getitem__, self.making), self.carriers.keys() | self.making
        reads = {node.number: {value for value in node.operands if value in self.pending} for node in nodes}
        every, worth = set[ValueId]().union(*reads.values()), set[ValueId]()
        for component in self.components:
            if not every.isdisjoint(component):
                last = [value for value in component if any(user not in able for user, _ in self.placements.uses(value))]
                if sum(map(self.price, last)) < sum(map(self.price, self.resolved.intersection(component))):
                    worth.update(component)
        return {number for number, values in reads.items() if values <= worth}

    def cut(self) -> None:
        """Chooses the ops that carry sums. A sum without a linear reader resolves at once and needs no cut."""
        for component in self.components:
            if len(component) == 1:
                self.resolved.update(component)
            else:
                self.choose(component)

    def cost(self) -> int:
        """What it costs to resolve the sums."""
        return sum(map(self.price, self.resolved))

    @cached_property
    def components(self) -> Collection[Sequence[ValueId]]:
        """Groups sums that can meet."""
        joined, found = UnionFind([*range(len(self.program.types))]), dict[int, list[ValueId]]()
        for node in map(self.program.nodes.__getitem__, self.carriers):
            for value in node.operands:
                if value in self.pending:
                    joined.join(value, node.results[0])
        for value in self.pending:
            found.setdefault(joined.root(value), []).append(value)
        return found.values()

    def choose(self, component: Sequence[ValueId]) -> None:
        """Chooses the ops that carry sums of a component, as a minimum cut. Layers are alike: equal networks are cut once."""
        carrying, at = dict[NodeId, int](), {value: number for number, value in enumerate(component)}
        network = list[tuple[int, bool, tuple[int, ...]]]()
        for value in component:
            ends = list[int]()
            for number, _ in self.placements.uses(value):
                if number in self.carriers:
                    carrying[number] = at[self.program.nodes[number].results[0]]
                ends.append(carrying.get(number, RESOLVE))
            network.append((self.price(value), value in self.placements.sources, tuple(ends)))
        pending, kept = _cut(tuple(network))
        self.resolved.update(component[number] for number in pending - kept)
        self.chosen.update(number for number, result in carrying.items() if result in pending)

    def price(self, value: ValueId) -> int:
        """What it costs to resolve the value, in bytes and collectives. Layers are alike: equal sums are priced once."""
        placements, region, uses = self.placements, self.program.region[value], self.placements.uses(value)
        wanted = tuple([placements.wanted(*use) for use in uses])
        key = self.layouts[value], self.pending[value], wanted, self.program.types[value].dtype, region
        if (found := self.prices.get(key)) is None:
            found = self.prices[key] = _resolving(*key[:3], placements.width(value), placements.trips(value), bool(region))
        return found + (len(uses) == 1 and self.is_moved(value, uses[0][0]))

    def is_moved(self, value: ValueId, reader: NodeId) -> bool:
        """Whether a sum's one reader moves its elements and could carry it. A product and its transpose become one."""
        if reader not in self.carriers or not self.program.nodes[reader].passes_on:
            return False
        if (maker := self.program.made_by(value)).number in self.carriers:
            return maker.passes_on
        return any(index.monoid is not None for index in maker.signature.indices)


@lru_cache(maxsize=1 << 10)
def _cut(sums: tuple[tuple[int, bool, tuple[int, ...]], ...]) -> tuple[Set[int], Set[int]]:
    """The sums of a network that are pending, and those of them that are not resolved.

    Of each: its price, whether an op makes it, and the sums that it moves into.

    The edge from `v` to `(v, "kept")` has the price of resolving `v`.
    """
    network = Network()
    for value, (price, is_made, ends) in enumerate(sums):
        network.edge(value, (value, "kept"), price)
        if is_made:
            network.edge("pending", value)
        for end in ends:
            if end != RESOLVE:
                network.edge(end, value)
            network.edge((value, "kept"), "resolved" if end == RESOLVE else end, ENDLESS)
    side = network.source_side("pending", "resolved")
    pending = frozenset(value for value in range(len(sums)) if value in side)
    return pending, frozenset(value for value in pending if (value, "kept") in side)


def is_alone(program: Program, carry: Node) -> bool:
    """Whether only the body of a loop reads a carry, and not its condition."""
    return not any(program.is_read(value) for value in carry.results[1:])


def carried_sum(carried: Mapping[NodeId, DeferredReduction], number: NodeId) -> Unreduced:
    """The sum that an op carries, if it carries one."""
    carry = carried.get(number)
    return () if carry is None else carry.pend


def kept(pend: Unreduced, carries: Unreduced) -> Unreduced:
    """What stays pending of an operand's sum for an op that carries a sum. The rest resolves before the op."""
    return tuple(each for each in pend if each in carries) if pend else ()


@cache
def is_sum(pend: Unreduced) -> bool:
    """Whether a pending fold is one through which linear ops may move: a sum, and no maximum."""
    return all(MONOIDS[each.monoid].linear for each in pend)


def is_linear(program: Program, node: Node, sums: frozenset[int], zeros: frozenset[int] = NO_NUMBERS) -> bool:
    """Whether an op is linear in these operands together, if those at `zeros` are zero too."""
    return linear_in(node.signature.definition, sums, program.zeros(node) | zeros, dtypes(program, node, sums))


def dtypes(program: Program, node: Node, sums: frozenset[int]) -> Dtypes:
    """The dtypes of an op's first one of these operands and of its result."""
    return program.types[node.operands[min(sums)]].dtype, program.types[node.results[0]].dtype


def _resolving(layout: Layout, pend: Unreduced, wanted: Sequence[Layout], width: int, trips: int, is_in_loop: bool) -> int:
    """The price to resolve a value in this layout: a reduce_scatter over the axes that all uses want, then an all_reduce."""
    sliced = frozenset({each.axis for each in pend}.intersection(*(each.axes for each in wanted)) if wanted else ())
    over = tuple(each for each in pend if not isinstance(each.axis, Loop))
    bytes = _received(layout, over, sliced) * width * trips
    if len(over) < len(pend) and is_in_loop:
        # The loop would end in the region, and store what each of its trips has.
        bytes += prod((*layout.local_shape, width, trips, *(each.axis.size for each in pend if each not in over)))
    # A fold over a loop sends nothing. A sum that each trip scatters is stored in parts, and does not wait for fewer.
    return int(bytes * RESOLVED) + (COUNTED * (1 if sliced else trips) if over else 0)


def _received(layout: Layout, pend: Unreduced, sliced: frozenset[Place]) -> Bytes:
    """The elements that a device receives to resolve a value in this layout, and to slice it on some of the axes."""
    size, parts = prod(layout.local_shape), devices(sliced)
    rest = devices({each.axis for each in pend} - sliced)
    bytes = share(size, parts) + Fraction(share(size, rest, times=2), parts)
    # Whole numbers are added and compared much faster.
    return bytes.numerator if bytes.denominator == 1 else bytes
