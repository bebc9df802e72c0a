"""Lets ops run elsewhere than claims say, if that costs less: along the dim on which an operand is tiled, or another dim.

An earlier tactic wins at an op that it shares with a later one: what the later one stores in parts is gathered. Where the op's
other operands and its result are smaller, it runs along the stored dim, and these move instead. So do the ops around it, as far
as that pays (`place_by_cut.py`).

    %t {data*512, 128}, %i {data*64}:  gather %t, %i   -->   %i is gathered, and %r{+data} is scattered; %t stays where it is

Where a claim stops, or several meet in a conflict, the op may run along another dim, or along one of the claims.

An op that only looks elements up may also run on all devices. A sum may also wait in ops that compute little, although all
devices then do all of their work.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from ...dialects.definitions.flops import flops
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis, major_to_minor
from ...dialects.ranges.factor import Factor, is_padded
from ..program.program import NO_NODE, Node, NodeId, Signature, ValueId
from ..redistribute.steps import Bytes
from .choices import Alternative, Choices
from .deferred_reductions import DeferredReduction, is_linear, makers
from .place_by_cut import take
from .placements import Instead, OpPlacement, Placement, Placements, Unreduced, place_op
from .propagate import Sweep
from .table import AxisTable, Claim, Table, misfit

MOST_OPS = 200
"""How many ops around a value are tried together."""

MOST_AXES = 4
"""With how many placed axes all ways are tried. With more they multiply, and ops that are in conflict or stopped stay."""

LITTLE = 2
"""The flops per element of its largest operand up to which all devices may run an op in full, so that a sum waits."""

Claims = dict[NodeId, Claim | None]
"""Op -> the claim that it takes along an axis; None: it is not placed on the axis."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that changes its layout, for some of its uses."""

    value: ValueId
    source: Layout
    target: Layout
    uses: tuple[tuple[NodeId, int], ...]


class Option(NamedTuple):
    """Claims that ops could follow along an axis, and the value that they come from."""

    axis: MeshAxis
    claims: Claims
    value: ValueId


def relocated(
    placements: Placements, carried: Mapping[NodeId, DeferredReduction], mismatches: list[Mismatch]
) -> dict[NodeId, dict[MeshAxis, Instead]]:
    """Returns the ops that run elsewhere, and places them so in `placements` too."""
    search = _Search(placements, dict(carried))
    groups = dict[NodeId, list[Mismatch]]()
    for each in [*mismatches, *search.compared()]:
        groups.setdefault(each.uses[0][0], []).append(each)
    for group in groups.values():
        search.attempt([option for each in group for option in search.options(each)])
    return search.found


class _Search:
    """Tries the ops around one mismatch after another. Ops that were moved for earlier mismatches stay moved."""

    def __init__(self, placements: Placements, carried: dict[NodeId, DeferredReduction]) -> None:
        self.placements, self.program = placements, placements.program
        self.table: Table = placements.table
        self.carried = carried
        self.is_wide = len(self.table.axes) > MOST_AXES
        settled = (self.program.producer[value] for value in placements.pinned)
        self.staying = {*(number for number, _, _ in self.table.conflicts), *settled} if self.is_wide else set[NodeId]()
        self.found = dict[NodeId, dict[MeshAxis, Instead]]()
        self.tried: set[tuple[NodeId, MeshAxis, Claim | None]] = set()
        self.known: dict[object, bool] = {}
        self.choices = Choices(placements, self.carried)
        self.movable: dict[tuple[NodeId, MeshAxis], bool] = {}
        """Cache: whether an op may move along an axis. This and the next two caches hold until an op moves."""
        self.patient: dict[tuple[NodeId, frozenset[int]], bool] = {}
        self.known_ways: dict[tuple[NodeId, MeshAxis, Claim | None, Unreduced | None], Alternative | None] = {}

    def options(self, each: Mismatch) -> Iterator[Option]:
        """What ops around a value that changes its layout could do instead."""
        terms = makers(self.placements, self.carried, each.value) if each.source.pending else []
        for axis, claim in (*self.claims(each, terms), *self.other_dims(each)):
            yield Option(axis, self.region(each.value, axis, claim), each.value)
        for axis in sorted({pending.axis for pending in each.source.pending}):
            if lookups := dict.fromkeys(node.number for node in terms if self.looks_up(node, axis)):
                parts = ((dim, factor) for dim, factor in each.target.factors if factor.axis == axis)
                around = [self.region(each.value, axis, self.claim(each.value, *part)) for part in parts]
                yield Option(axis, (around[0] if around else {}) | lookups, each.value)

    def attempt(self, options: list[Option]) -> None:
        """Places ops as the best option says if that costs less. Options whose ops were all tried before are left out."""
        new = list[Option]()
        for each in options:
            keys = {(number, each.axis, claim) for number, claim in each.claims.items()}
            if not keys <= self.tried:
                self.tried |= keys
                new.append(each)
        at, chosen = take(self.choices, [self.ways(each.axis, each.claims) for each in new], departs=True)
        for number in chosen:
            self.found.setdefault(number, {})[new[at].axis] = Instead(new[at].claims.get(number), new[at].value)
        if chosen:
            for known in (self.movable, self.patient, self.known_ways):
                known.clear()

    # --- what could receive less ------------------------------------------------------------------------------------------

    def claims(self, each: Mismatch, terms: list[Node]) -> Iterator[tuple[MeshAxis, Claim]]:
        """The claims that the ops might follow: those of the layout that a value leaves, or to which a sum is scattered."""
        kept, pending = set(each.target.factors), {pend.axis for pend in each.source.pending}
        for dim, factor in each.source.factors:
            if (dim, factor) not in kept and any(self.promises(*use, dim, factor) for use in each.uses):
                yield factor.axis, self.claim(each.value, dim, factor)
        for dim, factor in each.target.factors:
            if factor.axis in pending and self.promises_parts(each, factor, terms):
                yield factor.axis, self.claim(each.value, dim, factor)

    def other_dims(self, each: Mismatch) -> Iterator[tuple[MeshAxis, Claim]]:
        """The claims on other dims of a value that is gathered along one, for ops at which its claim has stopped."""
        kept = set(each.target.factors)
        for dim, factor in () if self.is_wide else each.source.factors:
            axis = factor.axis
            uses = (use for use in each.uses if use[0] < self.program.end and (dim, factor) not in kept)
            nodes = [node for number, at in uses if at < len((node := self.program.nodes[number]).operands)]
            if any(
                (axis not in self.placements.axes(node) or self.merges(node)) and self.may_move(node, axis) for node in nodes
            ):
                for other, extent in enumerate(each.source.global_shape):
                    block = min((own.stride for own in each.source.at(other)), default=extent)
                    if other != dim and block % factor.size == 0:
                        yield axis, self.claim(each.value, other, Factor(axis, block // factor.size))

    def merges(self, node: Node) -> bool:
        """Whether devices compare blocks along an index of the op: those that it sorts, or what it selects of each."""
        placed = self.placements.nodes[node.number]
        return placed.merged is not None or placed.selected is not None

    def compared(self) -> Iterator[Mismatch]:
        """What is read by ops that merge or select, as if it were gathered along all axes of the op."""
        for node in filter(self.merges, self.program.nodes):
            value, axes = node.operands[0], self.placements.axes(node)
            lies = self.placements.home(value)
            left = Layout.of(lies.global_shape, [each for each in lies.factors if each[1].axis not in axes])
            yield Mismatch(value, lies, left, ((node.number, 0),))

    def claim(self, value: ValueId, dim: int, factor: Factor) -> Claim:
        """A claim by the tactic that has placed the value or, if none has, a use of it."""
        own = self.table.claim(value, factor.axis)
        uses = (self.table.axes[factor.axis].nodes[number] for number, _ in self.program.uses[value])
        tactics = [each.tactic for each in (own, *uses) if each is not None]
        return Claim(dim, factor, tactics[0] if tactics else 0)

    def promises(self, number: NodeId, position: int, dim: int, factor: Factor) -> bool:
        """Whether an op could receive less if it ran along this dim of an operand."""
        if number == len(self.program.nodes) or factor.has_halo:
            return False
        node = self.program.nodes[number]
        if position >= len(node.operands):
            return False
        # Layers are alike: what one of them shows holds for the others.
        key = (
            node.signature,
            self.placements.nodes[number],
            tuple(map(self.placements.with_sums, node.operands)),
            position,
            dim,
            factor,
        )
        known = self.known.get(key)
        if known is False or not self.may_move(node, factor.axis):
            return False
        if known is None:
            known = self.known[key] = self.receives_less(node, position, dim, factor)
        return known

    def receives_less(self, node: Node, position: int, dim: int, factor: Factor) -> bool:
        """Whether running the op along this dim of an operand receives less than its placement now does."""
        index = next((digit.at for digit in node.signature.operand_dims[position][dim]), None)
        if index is None:
            return False
        now, after = self.placements.nodes[node.number], self.placements.without(node, {factor.axis})
        ins = list(enumerate(node.operands))
        gathered = sum(self.lacks(v, after.wanted[at]) for at, v in ins if index not in node.signature.operand_at[at])
        is_sum = any(index not in at for at in node.signature.result_at)
        scattered = min(self.waiting(node)) * (factor.size - 1) / factor.size if is_sum else 0
        return gathered + scattered < sum(self.received(v, now.wanted[at]) for at, v in ins)

    def promises_parts(self, each: Mismatch, factor: Factor, terms: list[Node]) -> bool:
        """Whether the ops that make a sum could receive less if each device computed only its part of the result."""
        scattered = self.placements.local_bytes(each.value, each.source.with_pending(())) * (factor.size - 1) / factor.size
        return any(self.least(node) < scattered and self.may_move(node, factor.axis) for node in terms)

    def least(self, node: Node) -> Bytes:
        """The bytes to gather an operand of the op: of those that are not zero, the one that costs least."""
        operands = [value for value in node.operands if not self.program.zero[value]]
        wholes = [type.layout for type in map(self.program.types.__getitem__, operands)]
        return min(map(self.lacks, operands, wholes), default=0)

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

    def looks_up(self, node: Node, axis: MeshAxis) -> bool:
        """Whether the op only looks elements up, in an array that the program computes and that is in parts on the axis.

        A lookup in an argument stays: the argument is tiled so that no device stores all of it.
        """
        if self.program.parameter[node.operands[0]]:
            return False
        placement = self.placements.nodes[node.number].placement
        looked_up = any(node.signature.indices[at].reads for at, factor in placement if factor.axis == axis)
        return looked_up and self.may_move(node, axis)

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
        if not self.choices.is_free(node) or not is_linear(self.program, node, positions):
            return False
        ins, outs = (tuple(map(self.program.shape, values)) for values in (node.operands, node.results))
        work = flops(node.op_name, node.params, ins, outs)
        return work is not None and work <= LITTLE * max(map(prod, ins), default=0)

    def region(self, value: ValueId, axis: MeshAxis, claim: Claim) -> Claims:
        """The ops around a value that would follow its claim, if nothing else were placed on the axis."""
        table, program = self.table.copy(), self.program
        table.blocked, table.conflicts, table.reconciled = {}, {}, {}
        table.axes[axis] = AxisTable(table.axes[axis].whole, [None] * len(program.nodes), [None] * len(program.types))
        table.axes[axis].values[value] = claim
        sweep = _Around(table, axis, claim.tactic, self)
        sweep.run([value])
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
        """Does nothing: arguments stay where they are."""

    def decided(self, node: Node) -> None:
        claim, own = self.claims.nodes[node.number], self.search.table.axes[self.axis].nodes[node.number]
        assert claim is not None
        leaves = own is not None and own.held and own[:2] != claim[:2]
        if not leaves and (claim.at, claim.factor) not in self.search.placements.nodes[node.number].placement:
            self.found[node.number] = claim
            super().decided(node)
