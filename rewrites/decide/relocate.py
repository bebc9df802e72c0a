"""Lets ops run elsewhere than claims say, if that costs less: along another of their indices, or on all devices.

An earlier tactic wins at an op that it shares with a later one: what the later one stores in parts is gathered. Where the op's
other operands and its result are smaller, it runs along the stored dim, and these move instead. So do the ops around it, as far
as that pays (`place_by_cut.py`). Where a claim stops, or several meet in a conflict, the op may run along any index too.

    %t {data*512, 128}, %i {data*64}:  gather %t, %i   -->   %i is gathered, and %r{+data} is scattered; %t stays where it is

An op that looks elements up, or computes little, may also run on all devices, and a sum may wait in ops that compute little.
The work of other ops stays divided as tactics divide it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import NamedTuple

from ...dialects.definitions.flops import flops
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis, major_to_minor
from ...dialects.ranges.factor import Factor, is_padded
from ..program.breadth_first import reached
from ..program.program import NO_NODE, Node, NodeId, Position, Signature, ValueId
from ..redistribute.steps import Bytes, share
from .choices import Alternative, Choices
from .deferred_reductions import DeferredReduction, is_linear, makers
from .min_cut import ENDLESS
from .place_by_cut import take
from .placements import Instead, OpPlacement, Placement, Placements, Unreduced, place_op
from .price import Price, charged, is_slow, seconds
from .propagate import Sweep
from .table import AxisTable, Claim, Table, misfit

MOST_OPS = 200
"""How many ops around a value are tried together."""

FEW_AXES = 2
"""With how many placed axes all indices are tried. With more, ops only follow values: there are many paths to search."""

MOST_AXES = 3
"""With how many placed axes ops in conflict and stopped ones are tried. With more they stay where they are."""

DEPTH = 8
"""How many ops up and down a bound looks, before an option is tried in full."""

ROUNDS = 3
"""How often all ops are tried, as long as any of them moves."""

LITTLE = 2
"""The flops per element of its largest operand up to which an op computes little."""

Claims = dict[NodeId, Claim | None]
"""Op -> the claim that it takes along an axis; None: it is not placed on the axis."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that changes its layout, for some of its uses; without uses, where it is made."""

    value: ValueId
    source: Layout
    target: Layout
    uses: tuple[tuple[NodeId, int], ...]


class Option(NamedTuple):
    """Claims that ops could follow along an axis, and the value for which they do."""

    axis: MeshAxis
    claims: Claims
    value: ValueId
    follows: bool
    """Whether this is the claim of a layout in which the value lies or is wanted."""
    along: int | None
    """The index along which an op runs; None: all devices run it."""
    promising: dict[int | None, None]
    """The indices that are tried for all ops like the first one."""


def relocated(
    placements: Placements, carried: Mapping[NodeId, DeferredReduction], mismatches: list[Mismatch]
) -> dict[NodeId, dict[MeshAxis, Instead]]:
    """Returns the ops that run elsewhere, and places them so in `placements` too."""
    search = _Search(placements, dict(carried))
    groups = dict[NodeId, list[Mismatch]]()
    for each in [*mismatches, *search.compared()]:
        first = each.uses[0][0] if each.uses else search.program.producer[each.value]
        groups.setdefault(first, []).append(each)
    for _ in range(ROUNDS):
        search.tried.clear()
        taken = search.taken
        for group in groups.values():
            search.improve(group)
        for number, axis in search.unplaced():
            search.attempt([*search.options(number, axis)])
        if search.taken == taken:
            break
    return search.found


class _Search:
    """Tries the ops around one mismatch after another. Ops that were moved for earlier mismatches stay moved."""

    def __init__(self, placements: Placements, carried: dict[NodeId, DeferredReduction]) -> None:
        self.placements, self.program = placements, placements.program
        self.table: Table = placements.table
        self.carried = carried
        self.is_wide = len(self.table.axes) > MOST_AXES
        self.is_many = len(self.table.axes) > FEW_AXES
        settled = (self.program.producer[value] for value in placements.pinned)
        self.staying = {*(number for number, _, _ in self.table.conflicts), *settled} if self.is_wide else set[NodeId]()
        self.found = dict[NodeId, dict[MeshAxis, Instead]]()
        self.taken = 0
        self.tried: set[tuple[NodeId, MeshAxis, Claim | None]] = set()
        self.hopeless: set[object] = set()
        """Kinds of moves about which nothing can be done."""
        self.promising: dict[object, dict[int | None, None]] = {}
        self.read: dict[object, Bytes] = {}
        self.made: dict[object, Bytes] = {}
        self.placed: dict[object, OpPlacement | None] = {}
        self.small: dict[object, bool] = {}
        self.choices = Choices(placements, self.carried)
        self.movable: dict[tuple[NodeId, MeshAxis], bool] = {}
        """Cache: whether an op may move along an axis. This and the next two caches hold until an op moves."""
        self.patient: dict[tuple[NodeId, frozenset[int]], bool] = {}
        self.known_ways: dict[tuple[NodeId, MeshAxis, Claim | None, Unreduced | None], Alternative | None] = {}

    def improve(self, group: Sequence[Mismatch]) -> None:
        """Tries what could be done about moves to one op. Layers are alike: what does not help one is not tried for another."""
        kinds = [(each, self.kind(each)) for each in group]
        options = [option for each, kind in kinds if kind not in self.hopeless for option in self.around(each)]
        # First along the dims on which values lie or are wanted, then along all others; over many axes one after another.
        in_turn = [[each] for each in options] if self.is_many else [[each for each in options if each.follows], options]
        if not any(self.attempt(each) for each in in_turn if each):
            self.hopeless.update(kind for _, kind in kinds)

    def kind(self, each: Mismatch) -> object:
        """What a move has in common with those of other layers: its layouts, and the ops at its ends."""
        program, placed = self.program, self.placements.nodes
        maker, ends = program.maker(each.value), (use for use in each.uses if use[0] < program.end)
        made = None if maker is None else (maker.signature, id(placed[maker.number]))
        read = ((program.nodes[number].signature, id(placed[number]), at) for number, at in ends)
        return each.source, each.target, made, *read

    # --- what could cost less ---------------------------------------------------------------------------------------------

    def around(self, each: Mismatch) -> Iterator[Option]:
        """What the ops at both ends of a move could do instead, on the axes on which the value changes its layout."""
        pending = {pend.axis for pend in each.source.pending}
        axes = {factor.axis for _, factor in {*each.source.factors} ^ {*each.target.factors}} | pending
        makers_ = makers(self.placements, self.carried, each.value) if pending else [self.program.maker(each.value)]
        ends = [node.number for node in makers_ if node is not None]
        ends += [number for number, _ in each.uses if number < self.program.end]
        for axis in sorted(axes):
            for number in dict.fromkeys(ends):
                yield from self.options(number, axis, each)

    def unplaced(self) -> Iterator[tuple[NodeId, MeshAxis]]:
        """The ops that run whole along an axis because a claim has stopped there, or several are in conflict."""
        table, nodes = self.table, self.program.nodes
        for number, _, axis in () if self.is_wide else (*table.conflicts, *table.blocked):
            if 0 <= number < self.program.end and axis not in self.placements.axes(nodes[number]):
                yield number, axis

    def compared(self) -> Iterator[Mismatch]:
        """What is read by ops that merge or select, as if it were gathered along all axes of the op."""
        for node, placed in zip(self.program.nodes, self.placements.nodes, strict=True):
            if placed.merged is not None or placed.selected is not None:
                lies, axes = self.placements.home(node.operands[0]), self.placements.axes(node)
                left = Layout.of(lies.global_shape, [each for each in lies.factors if each[1].axis not in axes])
                yield Mismatch(node.operands[0], lies, left, ((node.number, 0),))

    def options(self, number: NodeId, axis: MeshAxis, mismatch: Mismatch | None = None) -> Iterator[Option]:
        """What an op could do along an axis: run along another index, or on all devices, and the ops around it too."""
        node = self.program.nodes[number]
        if self.may_move(node, axis):
            followed = set[int]() if mismatch is None else _followed(node, axis, mismatch)
            kind = self.surroundings(node), axis, frozenset(followed) if self.is_many else None
            if (promising := self.promising.get(kind)) is None:
                every = followed if self.is_many else self.indices(node, axis)
                promising = self.promising[kind] = dict.fromkeys(at for at in every if self.promises(node, axis, at))
            for index in promising:
                claims = self.whole(node, axis) if index is None else self.region(node, axis, index)
                value = node.results[0] if mismatch is None else mismatch.value
                option = Option(axis, claims, value, index in followed, index, promising)
                yield option
                # What is read in several layouts may be computed whole before.
                before = {each: None for each in claims if each < number and self.may_be_whole(self.program.nodes[each], axis)}
                if before and index is not None and not self.is_many:
                    yield option._replace(claims=claims | before)

    def indices(self, node: Node, axis: MeshAxis) -> Iterator[int | None]:
        """The indices along which an op could run on an axis, and None if it could run on all devices."""
        now = self.placements.nodes[node.number]
        for index in range(len(node.signature.indices)):
            placed = self.along(node, axis, index)
            if placed is not None and placed.placement != now.placement:
                yield index
        if self.may_be_whole(node, axis):
            yield None

    def along(self, node: Node, axis: MeshAxis, index: int | None) -> OpPlacement | None:
        """The op's placement with an index on an axis, or without the axis; None if the index does not divide."""
        now = self.placements.nodes[node.number]
        if (key := (node.signature, now, axis, index)) not in self.placed:
            claim = None if index is None else self.claim(node, axis, index)
            placement = self.placement(node, axis, claim)
            fits = (index is None or claim is not None) and _is_even(node.signature, placement)
            self.placed[key] = place_op(node.signature, placement) if fits else None
        return self.placed[key]

    def claim(self, node: Node, axis: MeshAxis, index: int) -> Claim | None:
        """The claim that puts an index on an axis: as a value lies that the op reads or makes, or else in blocks.

        None if it does not divide.
        """
        extent = node.signature.indices[index].extent
        others = [each for at, each in self.placements.nodes[node.number].placement if at == index and each.axis != axis]
        block = min((each.stride for each in others), default=extent)
        lies = next(self.lying(node, axis, index), None)
        if lies is None and (not block or block % axis.size or block * prod(each.size for each in others) != extent):
            return None
        return Claim(index, Factor(axis, block // axis.size) if lies is None else lies, self.tactic(node, axis, index))

    def lying(self, node: Node, axis: MeshAxis, index: int) -> Iterator[Factor]:
        """The factors by which the dims of an index lie on an axis, in the values that an op reads and makes."""
        ends = zip((*node.operands, *node.results), (*node.signature.operand_at, *node.signature.result_at), strict=True)
        for value, at in ends:
            place, extent = at.get(index), node.signature.indices[index].extent
            if place is not None and place.minor == 1 and self.program.shape(value)[place.dim] == extent:
                yield from (f for dim, f in self.placements.homes[value].factors if dim == place.dim and f.axis == axis)

    def tactic(self, node: Node, axis: MeshAxis, index: int) -> int:
        """The tactic that has placed an index of an op in some operand or result, or else the op itself, or another value."""
        ends = zip((*node.operands, *node.results), (*node.signature.operand_at, *node.signature.result_at), strict=True)
        claims = [(self.table.claim(value, axis), at.get(index)) for value, at in ends]
        along = (claim for claim, at in claims if claim is not None and at is not None and claim.at == at.dim)
        every = (*along, self.table.axes[axis].nodes[node.number], *(claim for claim, _ in claims))
        return next((each.tactic for each in every if each is not None), 0)

    def attempt(self, options: list[Option]) -> bool:
        """Places ops as the best option says if that costs less, and says so. Options that were tried before are left out."""
        new = list[Option]()
        for each in options:
            keys = {(number, each.axis, claim) for number, claim in each.claims.items()}
            if not keys <= self.tried:
                self.tried |= keys
                new.append(each)
        at, chosen = take(self.choices, [self.ways(each.axis, each.claims) for each in new], departs=True)
        for each in options if not chosen else ():
            each.promising.pop(each.along, None)
        self.taken += bool(chosen)
        for number in chosen:
            self.found.setdefault(number, {})[new[at].axis] = Instead(new[at].claims.get(number), new[at].value)
        if chosen:
            for known in (self.movable, self.patient, self.known_ways, self.read, self.made):
                known.clear()
        return bool(chosen)

    def surroundings(self, node: Node) -> object:
        """What an op reads and makes, and how. Layers are alike: what one of them shows holds for the others."""
        reads = tuple(map(self.placements.with_sums, node.operands))
        wanted = [self.placements.wanted(*use) for value in node.results for use in self.placements.uses(value)]
        return node.signature, self.placements.nodes[node.number], reads, tuple(wanted)

    def promises(self, node: Node, axis: MeshAxis, index: int | None) -> bool:
        """Whether an op could cost less along an index: what devices then receive at least is less than what they do now.

        What ops downstream receive then, and what they no longer receive, counts too.
        """
        now, after = self.placements.nodes[node.number], self.along(node, axis, index)
        if after is None:
            return False
        received = sum(self.received(value, now.wanted[at]) for at, value in enumerate(node.operands))
        if not self.is_many:
            received += sum(way.bytes for value in node.results for way, _ in self.choices.ways(value, {}))
        received += sum(way.bytes for way, _ in self.choices.own(node, now)[0])
        if self.is_many:
            # Over many axes a search for paths is long.
            return self.gathers(node, axis, index) < received
        least = sum(bound(node, axis, index) for bound in (self.reads, self.makes, self.shared))
        work, less = (charged(self.placements, node, each) for each in (now, after))
        return self.bound(axis, least, less) < self.bound(axis, received, work)

    def bound(self, axis: MeshAxis, received: Bytes, computed: int) -> Price:
        """The price of bytes that are received over an axis, and of flops."""
        slow = received if is_slow(self.program.mesh, [axis]) else 0
        return Price(seconds(self.program.mesh, received, slow, computed), 0)

    def shared(self, node: Node, axis: MeshAxis, index: int | None) -> Bytes:
        """The bytes that devices at least receive for the other uses of what the op reads, if these values move for it."""
        found: Bytes = 0
        if (after := self.along(node, axis, index)) is None:
            return ENDLESS
        for position, (value, wanted) in enumerate(zip(node.operands, after.wanted, strict=True)):
            if self.received(value, self.placements.wanted(node.number, position)):
                at = None if index is None else node.signature.operand_at[position].get(index)
                others = [use for use in self.placements.uses(value) if use[0] != node.number]
                found += self.together(self.leaves(value, wanted, axis, at, use, DEPTH) for use in others)
        return found

    def gathers(self, node: Node, axis: MeshAxis, index: int | None) -> Bytes:
        """The bytes that devices lack of the operands of an op that runs along an index, or receive to scatter its sum."""
        if (after := self.along(node, axis, index)) is None:
            return ENDLESS
        return sum(map(self.misses, node.operands, after.wanted)) + self.scatters(node, axis, index)

    def scatters(self, node: Node, axis: MeshAxis, index: int | None) -> Bytes:
        """The bytes that devices at least receive to scatter the sum that an op makes along an index."""
        is_sum = index is not None and any(index not in at for at in node.signature.result_at)
        return share(min(self.waiting(node)), axis.size) if is_sum else 0

    def reads(self, node: Node, axis: MeshAxis, index: int | None, depth: int = DEPTH) -> Bytes:
        """The bytes that devices at least receive so that an op can run along an index."""
        key = node.number, axis, index, depth
        if key in self.read:
            return self.read[key]
        if (after := self.along(node, axis, index)) is None:
            return ENDLESS
        wanted = {value: (after.wanted[at], self.dim(node, at, index)) for at, value in enumerate(node.operands)}
        found = sum(self.arrives(value, axis, *each, depth) for value, each in wanted.items() if not self.program.zero[value])
        found += self.scatters(node, axis, index)
        self.read[key] = found
        return found

    def arrives(self, value: ValueId, axis: MeshAxis, wanted: Layout, dim: int | None, depth: int) -> Bytes:
        """The bytes that devices at least receive to have a value in a layout: it moves, or its op runs elsewhere."""
        direct, maker = self.received(value, wanted), self.program.maker(value)
        if not direct or maker is None or not self.may_move(maker, axis):
            return direct
        if dim is None and not (depth and self.may_be_whole(maker, axis)):
            return direct
        index = None if dim is None else _index_of(maker.signature.result_at[maker.results.index(value)], dim)
        if dim is not None and index is None:
            return direct
        return min(direct, self.reads(maker, axis, index, depth - 1)) if depth else 0

    def makes(self, node: Node, axis: MeshAxis, index: int | None, depth: int = DEPTH) -> Bytes:
        """The bytes that devices at least receive of the results of an op that runs along an index, or farther downstream."""
        key = node.number, axis, index, depth
        if key in self.made:
            return self.made[key]
        if (after := self.along(node, axis, index)) is None:
            return ENDLESS
        found = self.made[key] = sum(
            self.together(
                self.leaves(value, layout, axis, None if index is None else at.get(index), use, depth) for use in uses
            )
            for value, layout, at in zip(node.results, after.produced, node.signature.result_at, strict=True)
            if (uses := self.placements.uses(value)) and (index is None or index in at)
        )
        return found

    def together(self, uses: Iterable[Bytes]) -> Bytes:
        """The least for several uses of a value: they may share what they receive, and each may save what it received."""
        every = [*uses]
        return max((*every, 0)) + sum(each for each in every if each < 0)

    def leaves(
        self, value: ValueId, layout: Layout, axis: MeshAxis, at: Position | None, use: tuple[NodeId, int], depth: int
    ) -> Bytes:
        """The bytes that devices at least receive for a use of a value: it moves, or the op that reads it runs elsewhere.

        Less than nothing if that op, or those behind it, then receive so much less.
        """
        number, position = use
        if number == self.program.end:
            return self.placements.received(value, layout, self.placements.outside(value, layout))
        direct = self.placements.received(value, layout, self.placements.wanted(number, position))
        reader = self.program.nodes[number]
        if not direct or at is None or not self.may_move(reader, axis):
            return direct
        index = _index_of(reader.signature.operand_at[position], at.dim)
        if index is None or (after := self.along(reader, axis, index)) is None:
            return direct
        others = (n for n in range(len(reader.operands)) if index not in reader.signature.operand_at[n])
        gathered = sum(self.lacks(reader.operands[n], after.wanted[n]) for n in others)
        now = self.placements.nodes[number].wanted
        saved = sum(self.received(each, now[n]) for n, each in enumerate(reader.operands) if n != position)
        least = gathered + (self.makes(reader, axis, index, depth - 1) if depth else 0) - saved
        # What is saved counts once for all operands that lead there.
        ways = sum(not self.program.parameter[each] for each in reader.operands)
        return min(direct, least // ways if least < 0 < ways else least)

    def dim(self, node: Node, position: int, index: int | None) -> int | None:
        """The dim of an operand along which an index runs; None if it has none."""
        at = None if index is None else node.signature.operand_at[position].get(index)
        return None if at is None else at.dim

    def waiting(self, node: Node) -> Iterator[int]:
        """The local bytes of the op's result, and of each later result through which its sum may wait."""
        for _ in range(MOST_OPS):
            (value, *others), axes = node.results, self.placements.axes(node)
            yield self.placements.local_bytes(value, self.placements.without(node, axes).produced[0])
            uses = self.placements.uses(value)
            if others or len(uses) != 1 or not self.may_wait(uses[0][0], frozenset({uses[0][1]})):
                return
            node = self.program.nodes[uses[0][0]]

    def received(self, value: ValueId, target: Layout) -> Bytes:
        return self.placements.received(value, self.placements.with_sums(value), target)

    def lacks(self, value: ValueId, target: Layout) -> int:
        """The bytes by which the target is larger than a device's part of the value: it receives at least so many."""
        return max(
            self.placements.local_bytes(value, target) - self.placements.local_bytes(value, self.placements.home(value)), 0
        )

    def misses(self, value: ValueId, target: Layout) -> Bytes:
        """The bytes that a device lacks at least of its part of the target, if it has other parts of some dims."""
        home = self.placements.home(value)
        apart = prod(factor.size for dim, factor in home.factors if (dim, factor) not in target.factors)
        return share(self.placements.local_bytes(value, target), apart)

    # --- which ops --------------------------------------------------------------------------------------------------------

    def may_move(self, node: Node, axis: MeshAxis) -> bool:
        """Whether the op may move on the axis. It stays if a tactic holds it.

        An op that is held and carries a sum may still be placed where it is held.
        """
        if (known := self.movable.get((node.number, axis))) is None:
            known = self.movable[node.number, axis] = self.is_movable(node, axis)
        return known

    def is_movable(self, node: Node, axis: MeshAxis) -> bool:
        if not self.choices.is_free(node) or node.signature.rivals or node.number in self.staying:
            return False
        moved, every = self.found.get(node.number, {}), self.table.axes.items()
        claims = [moved[each].claim if each in moved else table.nodes[node.number] for each, table in every]
        own = self.table.axes[axis].nodes[node.number]
        carry = self.carried.get(node.number)
        axes = set[MeshAxis]() if carry is None else {each.axis for each in carry.pend}
        asked = {(claim.at, claim.factor) for claim in claims if claim is not None and claim.factor.axis not in axes}
        placement = self.placements.nodes[node.number].placement
        held = own is not None and own.held and carry is None
        return not held and asked >= set(placement) and _is_even(node.signature, placement)

    def computes_little(self, node: Node) -> bool:
        """Whether every device may do all of an op's work: it looks elements up that the program computes, or computes little.

        A lookup in an argument stays: the argument is tiled so that no device stores all of it.
        """
        if (known := self.small.get(key := (node.signature, node.params))) is None:
            ins, outs = (tuple(map(self.program.shape, values)) for values in (node.operands, node.results))
            work = flops(node.op_name, node.params, ins, outs)
            known = self.small[key] = work is not None and work <= LITTLE * max(map(prod, ins), default=0)
        looks_up = any(index.reads for index in node.signature.indices)
        return not self.program.parameter[node.operands[0]] if looks_up and node.operands else known

    def may_wait(self, number: NodeId, positions: frozenset[int]) -> bool:
        """Whether an op could carry a sum, and computes so little that every device may do all of it."""
        if (known := self.patient.get((number, positions))) is None:
            known = self.patient[number, positions] = self.waits(number, positions)
        return known

    def waits(self, number: NodeId, positions: frozenset[int]) -> bool:
        if number == len(self.program.nodes) or number in self.carried:
            return False
        node = self.program.nodes[number]
        if len(node.results) != 1 or node.results[0] in self.placements.pinned:
            return False
        return self.choices.is_free(node) and is_linear(self.program, node, positions) and self.computes_little(node)

    def whole(self, node: Node, axis: MeshAxis) -> Claims:
        """The op and those around it that compute little, as far as they are placed on the axis."""

        def beside(number: NodeId) -> Iterator[NodeId]:
            each = self.program.nodes[number]
            readers = (user for value in each.results for user, _ in self.program.uses[value])
            for other in (*map(self.program.producer.__getitem__, each.operands), *readers):
                if 0 <= other < self.program.end and self.may_be_whole(self.program.nodes[other], axis):
                    yield other

        return dict.fromkeys(islice(reached([node.number], beside), MOST_OPS))

    def may_be_whole(self, node: Node, axis: MeshAxis) -> bool:
        """Whether all devices of an axis may run an op. A parameter that is moved or cast is gathered anew for each use."""
        is_copy = any(self.program.parameter[value] and len(self.program.uses[value]) > 1 for value in node.results)
        is_small = axis in self.placements.axes(node) and self.computes_little(node)
        return is_small and not is_copy and self.may_move(node, axis)

    def region(self, node: Node, axis: MeshAxis, index: int) -> Claims:
        """The ops that would follow an op if it ran along an index, and nothing else were placed on the axis."""
        if (claim := self.claim(node, axis, index)) is None:
            return {}
        table, program = self.table.copy(), self.program
        table.blocked, table.conflicts, table.reconciled = {}, {}, {}
        table.axes[axis] = AxisTable(table.axes[axis].whole, [None] * len(program.nodes), [None] * len(program.types))
        table.axes[axis].nodes[node.number] = claim
        sweep = _Around(table, axis, claim.tactic, self)
        sweep.decided(node)
        sweep.run([])
        return sweep.found

    def ways(self, axis: MeshAxis, claims: Claims) -> dict[NodeId, Alternative]:
        """The placements of ops under these claims, and of the ops downstream in which their sums may wait."""
        found, ahead, last = dict[NodeId, Alternative](), sorted(claims), NO_NODE
        while ahead:
            node = self.program.nodes[number := heapq.heappop(ahead)]
            if number == last:
                continue
            last = number
            waits = None if number in claims else self.carrying(node, axis, found)
            way = None if number not in claims and waits is None else self.way(node, axis, claims.get(number), waits)
            if way is None:
                continue
            found[number] = way
            if way.pend:
                for user in {user for user, _ in self.program.uses[node.results[0]]}:
                    heapq.heappush(ahead, user)
        return found

    def way(self, node: Node, axis: MeshAxis, claim: Claim | None, waits: Unreduced | None) -> Alternative | None:
        """How an op is placed under a claim, or to let a sum wait; None if it cannot be."""
        key = node.number, axis, claim, waits
        if key not in self.known_ways:
            placement = self.placement(node, axis, claim)
            placed = place_op(node.signature, placement) if _is_even(node.signature, placement) else None
            self.known_ways[key] = None if placed is None else self.alternative(placed, waits)
        return self.known_ways[key]

    def alternative(self, placed: OpPlacement, waits: Unreduced | None) -> Alternative | None:
        """The placement with the sum that the op then makes or carries; None if it would do both, or makes more than a sum."""
        own = Alternative.of(placed)
        if not _is_plain(placed.pending) or (waits and own.pend):
            return None
        return own if waits is None else Alternative(placed, waits, True)

    def carrying(self, node: Node, axis: MeshAxis, found: Mapping[NodeId, Alternative]) -> Unreduced | None:
        """The sum that an op could carry, if its operands' ops are placed as in `found`; None if it could not."""
        makers = {at: found.get(self.program.producer[value]) for at, value in enumerate(node.operands)}
        sums = {at: way.pend for at, way in makers.items() if way is not None and way.pend}
        pend = next(iter(sums.values()), ())
        axes = {each.axis for each in pend}
        same = axis in axes and all(each == pend for each in sums.values())
        alone = not (axes - {axis}) & self.placements.axes(node)
        return pend if same and alone and self.may_wait(node.number, frozenset(sums)) else None

    def placement(self, node: Node, axis: MeshAxis, claim: Claim | None) -> Placement:
        """The op's placement with the claim on the axis."""
        kept = {factor.axis: (at, factor) for at, factor in self.placements.nodes[node.number].placement}
        kept.pop(axis, None)
        if claim is not None:
            kept[axis] = claim.at, claim.factor
        return tuple(kept[each] for each in major_to_minor(kept))


def _followed(node: Node, axis: MeshAxis, mismatch: Mismatch) -> set[int]:
    """The indices of an op that run along the dims on which a value that changes its layout lies or is wanted."""
    dims = {dim for dim, factor in (*mismatch.source.factors, *mismatch.target.factors) if factor.axis == axis}
    ends = zip((*node.operands, *node.results), (*node.signature.operand_at, *node.signature.result_at), strict=True)
    found = (_index_of(at, dim) for value, at in ends if value == mismatch.value for dim in dims)
    return {index for index in found if index is not None}


def _index_of(at: Mapping[int, Position], dim: int) -> int | None:
    """The index that runs along a dim."""
    return next((index for index, each in at.items() if each.dim == dim), None)


def _is_even(signature: Signature, placement: Placement) -> bool:
    """Whether the placement fits, every device has a block (not a window) of each index, and no index is padded."""
    factors: dict[int, list[Factor]] = {}
    for index, factor in placement:
        factors.setdefault(index, []).append(factor)
    indices = signature.indices
    return not any(each.has_halo for _, each in placement) and all(
        misfit(signature, at, own) is None and not is_padded(indices[at].extent, own) for at, own in factors.items()
    )


def _is_plain(pending: tuple[Unreduced, ...]) -> bool:
    """Whether an op leaves nothing pending, or only a sum in its only result."""
    return not any(pending) or (len(pending) == 1 and not any(each.scans or each.is_gathered for each in pending[0]))


class _Around(Sweep):
    """Propagation through the ops that may run elsewhere, up to those that already follow the claim."""

    def __init__(self, table: Table, axis: MeshAxis, tactic: int, search: _Search) -> None:
        super().__init__(table, axis, tactic, False, False)
        self.search = search
        self.found: Claims = {}

    def visit(self, node: Node) -> None:
        if len(self.found) < MOST_OPS and self.search.may_move(node, self.axis):
            super().visit(node)

    def argument(self, value: ValueId) -> None:
        """Lets all ops that read an argument follow, if it lies where the claim wants it: arguments stay where they are."""
        if self.claims.values[value] is None and len(wants := self.wants(value)) == 1:
            (claim,) = wants
            if (claim.at, claim.factor) in self.search.placements.homes[value].factors:
                self.claims.values[value] = claim
                for number, _ in self.program.uses[value]:
                    self.mark_ahead(number)

    def decided(self, node: Node) -> None:
        claim, own = self.claims.nodes[node.number], self.search.table.axes[self.axis].nodes[node.number]
        assert claim is not None
        leaves = own is not None and own.held and own[:2] != claim[:2]
        if not leaves and (claim.at, claim.factor) not in self.search.placements.nodes[node.number].placement:
            self.found[node.number] = claim
            super().decided(node)
