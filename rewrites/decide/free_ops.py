"""What ops may do other than claims say: run along another of their indices on an axis, or on all devices of it.

An op is free if claims alone decide where it runs, and no tactic holds it; so is the border of a loop or branch. An op may run
on all devices if it computes little, or looks up elements that the program computes or needs whole anyway; the work of other
ops stays divided as tactics divide it.

    add %x {data*8, 64}, %y {data*8, 64}   -->   along dim 1, or on all devices of `data`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import chain
from math import prod

from ...dialects.definitions.flops import flops
from ...dialects.definitions.syntax_tree import Shape
from ...dialects.params import ParamsAttr
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import Factor, is_padded
from ..program.program import Node, NodeId, Position, Signature
from .choices import Choices
from .deferred_reductions import DeferredReduction, carried_sum, is_linear, is_sum
from .placements import Instead, OpPlacement, Placements, place_op, placement_of
from .table import Claim, misfit

MOST_AXES = 3
"""With how many placed axes ops in conflict and stopped ones are free. With more they stay where they are."""

LITTLE = 2
"""The flops per element of its largest operand (on another device set: or result) up to which an op computes little."""


class FreeOps:
    """The ops that may run elsewhere, as they are placed now. Ops that were moved before stay moved."""

    def __init__(self, placements: Placements, carried: dict[NodeId, DeferredReduction]) -> None:
        self.placements, self.program, self.table = placements, placements.program, placements.table
        self.carried, self.choices = carried, Choices(placements, carried)
        self.is_wide = len(self.table.axes) > MOST_AXES
        settled = (self.program.producer[value] for value in placements.pinned)
        self.staying = {*(number for number, _, _ in self.table.conflicts), *settled} if self.is_wide else set[NodeId]()
        self.found = dict[NodeId, dict[Place, Instead]]()
        """The ops that were moved, and what they take instead of their claims."""
        placements.elsewhere = self.found
        self.fits = cache(_fits)
        self.known: dict[tuple[NodeId, Place | frozenset[int]], bool] = {}
        """Whether an op may move along an axis, and may wait for the sum of some operands: until the op moves."""

    def forget(self, moved: Set[NodeId]) -> None:
        """Drops what held until these ops moved."""
        self.known = {key: known for key, known in self.known.items() if key[0] not in moved}

    def may_move(self, node: Node, axis: Place) -> bool:
        """Whether the op may move on the axis. It stays if a tactic holds it.

        An op that is held and carries a sum may still be placed where it is held.
        """
        if (known := self.known.get((node.number, axis))) is None:
            known = self.known[node.number, axis] = self.is_movable(node, axis)
        return known

    def is_movable(self, node: Node, axis: Place) -> bool:
        if not node.is_free or node.number in self.staying:
            return False
        own = self.table.axes[axis].nodes[node.number]
        axes = {each.axis for each in carried_sum(self.carried, node.number)}
        asked = {claim[:2] for on, claim in self.claims(node).items() if claim is not None and on not in axes}
        placement = self.placements.nodes[node.number].placement
        held = own is not None and own.held and not axes
        return not held and asked >= set(placement)

    def may_be_whole(self, node: Node, axis: Place) -> bool:
        """Whether all devices of an axis may run an op.

        A parameter that is moved or cast is gathered anew for each use. What loops carry, stack and take apart is stored, and
        stays divided; what is the same in all trips may enter a loop whole.
        """
        is_copy = any(self.program.parameter[value] and len(self.program.uses[value]) > 1 for value in node.results)
        is_small = axis in self.placements.axes(node) and (self.computes_little(node) or self.looks_up_at_hand(node, axis))
        is_same = node.op_name == "enter" and node.passes_on
        return is_small and not is_copy and (is_same or not node.is_border) and self.may_move(node, axis)

    def looks_up_at_hand(self, node: Node, axis: Place) -> bool:
        """Whether an op looks up elements of a value that devices may hold whole along the axis.

        It is no larger than what the op reads of it, or another op, where claims have it, needs it whole.
        """
        if not looks_up(node):
            return False
        placed = self.under(node, axis, None)
        if placed is not None and prod(placed.wanted[0].local_shape) <= prod(placed.produced[0].local_shape):
            return True
        uses = self.placements.uses(node.operands[0])
        others = (use for use in uses if use[0] != node.number and axis not in self.found.get(use[0], {}))
        return any(axis not in self.placements.wanted(*use).axes for use in others)

    def computes_little(self, node: Node) -> bool:
        """Whether every device may do all of an op's work: it looks elements up that the program computes, or computes little.

        An argument that is looked up is tiled so that no device stores all of it: `looks_up_at_hand` says when it may be whole.
        """
        if looks_up(node):
            return not self.program.parameter[node.operands[0]]
        return _computes_little(node.op_name, node.params, *node.signature.shapes)

    def may_wait(self, number: NodeId, positions: frozenset[int]) -> bool:
        """Whether an op could carry a sum, and computes so little that every device may do all of it."""
        if (known := self.known.get((number, positions))) is None:
            known = self.known[number, positions] = self.waits(number, positions)
        return known

    def may_carry(self, node: Node, axis: Place) -> bool:
        """Whether an op that is not placed on an axis could carry the sums over it that it reads."""
        read = ((at, self.placements.sources.get(value, ())) for at, value in enumerate(node.operands))
        sums = frozenset(at for at, pend in read if is_sum(pend) and any(each.axis == axis for each in pend))
        return bool(sums) and axis not in self.placements.axes(node) and self.may_wait(node.number, sums)

    def waits(self, number: NodeId, positions: frozenset[int]) -> bool:
        if number == self.program.end or number in self.carried:
            return False
        node = self.program.nodes[number]
        if node.is_border or len(node.results) != 1 or self.placements.table.is_apart(node):
            return False
        return node.is_free and is_linear(self.program, node, positions) and self.computes_little(node)

    def indices(self, node: Node, axis: Place) -> Iterator[int | None]:
        """The indices along which an op could run on an axis, and None if it could run on all devices, or carry a sum there."""
        now = self.placements.nodes[node.number]
        for index in range(len(node.signature.indices)):
            placed = self.along(node, axis, index)
            if placed is not None and placed.placement != now.placement:
                yield index
        if self.may_be_whole(node, axis) or self.may_carry(node, axis):
            yield None

    def along(self, node: Node, axis: Place, index: int | None) -> OpPlacement | None:
        """The op's placement with an index on an axis, or without the axis; None if the index does not divide."""
        claim = None if index is None else self.claim(node, axis, index)
        return self.under(node, axis, claim) if index is None or claim is not None else None

    def under(self, node: Node, axis: Place, claim: Claim | None) -> OpPlacement | None:
        """The op's placement under a claim on an axis, or without the axis; None if it does not fit.

        It has to fit beside the claims on all axes too, because an op that carries a sum is not placed along these, and may not
        carry it then.
        """
        now: dict[Place, Claim | tuple[int, Factor] | None] = {
            factor.axis: (at, factor) for at, factor in self.placements.nodes[node.number].placement
        }
        placement, asked = placement_of(now | {axis: claim}), placement_of(self.claims(node) | {axis: claim})
        fits = self.fits(node.signature, placement) and (len(asked) == len(placement) or self.fits(node.signature, asked))
        return place_op(node.signature, placement) if fits else None

    def claims(self, node: Node) -> dict[Place, Claim | None]:
        """What the op takes on each axis: its claim, or what it was moved to."""
        return {axis: self.placements.claim(node.number, axis) for axis in self.table.axes}

    def claim(self, node: Node, axis: Place, index: int) -> Claim | None:
        """The claim that puts an index on an axis otherwise than now: as a value lies that the op reads or makes, or in blocks.

        An op that only shifts elements may also run in the windows in which they are read. None if the index does not divide.
        """
        extent, now = node.signature.indices[index].extent, self.placements.nodes[node.number].placement
        others = [each for at, each in now if at == index and each.axis != axis]
        block = min((each.stride for each in others), default=extent)
        ends = chain(self.lying(node, axis, index), self.asked(node, axis, index) if node.signature.shifts else ())
        lies = next((each for each in ends if (index, each) not in now), None)
        if lies is None and (not block or block % axis.size or block * prod(each.size for each in others) != extent):
            return None
        return Claim(index, Factor(axis, block // axis.size) if lies is None else lies, self.tactic(node, axis, index))

    def lying(self, node: Node, axis: Place, index: int) -> Iterator[Factor]:
        """The factors by which the dims of an index lie on an axis, in the values that an op reads and makes."""
        for value, at in node.ends:
            place, extent = at.get(index), node.signature.indices[index].extent
            if place is not None and place.minor == 1 and self.program.shape(value)[place.dim] == extent:
                yield from (factor for factor in self.placements.homes[value].at(place.dim) if factor.axis == axis)

    def asked(self, node: Node, axis: Place, index: int) -> Iterator[Factor]:
        """The factors by which the dims of an index are wanted on an axis, by the ops that read the results."""
        for value, at in zip(node.results, node.signature.result_at, strict=True):
            for use in self.placements.uses(value) if index in at else ():
                yield from (factor for factor in self.placements.wanted(*use).at(at[index].dim) if factor.axis == axis)

    def tactic(self, node: Node, axis: Place, index: int) -> int:
        """The tactic that has placed an index of an op in some operand or result, or else the op itself, or another value."""
        claims = [(self.table.claim(value, axis), at.get(index)) for value, at in node.ends]
        along = (claim for claim, at in claims if claim is not None and at is not None and claim.at == at.dim)
        every = (*along, self.table.axes[axis].nodes[node.number], *(claim for claim, _ in claims))
        return next((each.tactic for each in every if each is not None), 0)


def computes_little(node: Node) -> bool:
    """Whether an op computes little for each element of the largest array that it reads or makes."""
    ins, outs = node.signature.shapes
    return _computes_little(node.op_name, node.params, ins, outs, outs)


@lru_cache(maxsize=1 << 14)
def _computes_little(
    name: str, params: ParamsAttr, ins: tuple[Shape, ...], outs: tuple[Shape, ...], beside: tuple[Shape, ...] = ()
) -> bool:
    work = flops(name, params, ins, outs)
    return work is not None and work <= LITTLE * max(map(prod, (*ins, *beside)), default=0)


def looks_up(node: Node) -> bool:
    """Whether an op reads an operand, its first one, at positions that other operands hold."""
    return bool(node.operands) and any(index.reads for index in node.signature.indices)


def index_of(at: Mapping[int, Position], dim: int) -> int | None:
    """The index that runs along a dim."""
    return next((index for index, each in at.items() if each.dim == dim), None)


def _fits(signature: Signature, placement: Sequence[tuple[int, Factor]]) -> bool:
    """Whether the placement fits. An op that computes has a block of each index on every device, no window and no padding.

    One that only shifts elements may have these. Of indices that run along one dim together, as those of a window do, only one
    is placed.
    """
    factors: dict[int, list[Factor]] = {}
    for index, factor in placement:
        factors.setdefault(index, []).append(factor)
    extents = {at: signature.indices[at].extent for at in factors}
    fits = all(misfit(signature, at, own) is None for at, own in factors.items())
    if not fits or not all(factors.keys().isdisjoint(signature.rivals.get(at, ())) for at in factors):
        return False
    windows = any(each.has_halo for own in factors.values() for each in own)
    return signature.shifts or not (windows or any(is_padded(extents[at], own) for at, own in factors.items()))
