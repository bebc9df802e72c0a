"""The meaning of the table at each op: the layout of every operand and every result, and the reductions left pending.

Derived from the definitions once for each distinct (signature, placement); a transformer has a few hundred of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, chain, repeat
from math import prod
from operator import mul
from typing import NamedTuple, cast

from ...dialects.definitions.requirement_terms import Merging, Scan, Selection
from ...dialects.ground.dtypes import itemsize
from ...dialects.layouts import Layout, Pending
from ...dialects.ranges.algebra import Loop, Place, major_to_minor, nesting
from ...dialects.ranges.factor import Factor, overhang
from ..program.program import Node, NodeId, Position, Program, Signature, ValueId
from ..redistribute.kinds.merge import Merge
from ..redistribute.search import Path, path
from ..redistribute.steps import Bytes, share
from .requirements import Placing, requirements
from .table import Claim, Table, misfit

Unreduced = tuple[Pending, ...]
"""Pending reductions, major axis first."""

Placement = tuple[tuple[int, Factor], ...]
"""The placed factors of an op's indices, major axis first."""


class Instead(NamedTuple):
    """The claim that an op takes instead of the table's (None: not placed on the axis), and the value that it follows.

    With the seconds that it saves, together with the ops that moved with it.
    """

    claim: Claim | None
    value: ValueId
    saved: float = 0


Elsewhere = Mapping[NodeId, Mapping[Place, Instead]]
"""Op -> axis -> what the op takes there instead."""


class Selected(NamedTuple):
    """What an op selects along a dim of its operand: one list per device, apart and gathered.

    ```
    argmax of f32[data*4, model*512], model=8   -->   dim 1: [data*4, model*1], [data*4, 8]
    ```
    """

    dim: int
    apart: Layout
    gathered: Layout


@dataclass(frozen=True, slots=True, eq=False)
class OpPlacement:
    """One op under one placement."""

    placement: Placement
    wanted: tuple[Layout, ...]
    produced: tuple[Layout, ...]
    pending: tuple[Unreduced, ...]
    selected: Selected | None
    merged: Merge | None
    """The step that merges the blocks that the op has sorted."""
    is_plain: bool
    """Whether each device runs the op itself on its blocks, and nothing else is required."""
    reduced: dict[Unreduced, OpPlacement] = field(default_factory=dict[Unreduced, "OpPlacement"], repr=False)
    """The op under the same placement without the axes of sums, for those that were asked for."""

    @property
    def trips(self) -> int:
        """How often one device runs the op in the loops that it is placed in."""
        return prod([factor.size for _, factor in self.placement if isinstance(factor.place, Loop)])

    def with_sum(self, pend: Unreduced) -> Unreduced | None:
        """The sum that a result is if operands are this sum: that and the op's own, as a sum of sums is one sum.

        None if the op scans, or folds along an axis of the sum, or its result is gathered.
        """
        if not (own := self.pending[0]):
            return pend
        return None if any(each.scans or each.is_gathered for each in own) else merged_sum((pend, own))


def merged_sum(sums: Iterable[Unreduced]) -> Unreduced | None:
    """The sum with the axes of all of these, major axis first; None if two of them reduce one axis in different ways."""
    every = {each for pend in sums for each in pend}
    if len({each.axis for each in every}) < len(every):
        return None
    return tuple(sorted(every, key=lambda each: nesting(each.axis)))


def placement_of(claims: Mapping[Place, Claim | tuple[int, Factor] | None]) -> Placement:
    """The factors that the claims on an op, one for each axis, place."""
    return tuple([claim[:2] for axis in major_to_minor(claims) if (claim := claims[axis]) is not None])


def place_op(signature: Signature, placement: Placement) -> OpPlacement:
    """Slices the operands' dims with a placed index, tiles those of the results, and leaves folds pending."""
    found = signature.placed.get(placement)
    if found is None:
        ins, outs = signature.shapes
        wanted = tuple(_layout(shape, at, placement) for shape, at in zip(ins, signature.operand_at, strict=True))
        produced = tuple(_layout(shape, at, placement) for shape, at in zip(outs, signature.result_at, strict=True))
        found = signature.placed[placement] = OpPlacement(
            placement,
            wanted,
            produced,
            tuple(_pending(signature, at, placement) for at in signature.result_at),
            _selected(signature, placement),
            _merged(signature, placement, produced),
            _is_plain(signature, placement),
        )
    return cast(OpPlacement, found)


def _layout(shape: tuple[int, ...], at: dict[int, Position], placement: Placement) -> Layout:
    beside = [[each for on, each in placement if on == i and each is not factor] for i, factor in placement]
    placed = zip(placement, beside, strict=True)
    return Layout.of(shape, [(at[i].dim, at[i].outward(factor, others)) for (i, factor), others in placed if i in at])


def _pending(signature: Signature, at: Mapping[int, Position], placement: Placement) -> Unreduced:
    """What a result leaves pending: folds, and scans, whose blocks are scanned but not yet combined."""
    placed = [(i, factor.axis, signature.indices[i]) for i, factor in placement]
    folds = (Pending(info.monoid, axis) for i, axis, info in placed if info.monoid is not None and i not in at)
    scans = ((scan, axis, at[i].dim) for i, axis, info in placed if i in at for scan in info.parts(Scan))
    return (*folds, *(Pending(scan.monoid, axis, dim, scan.backwards) for scan, axis, dim in scans))


def _selected(signature: Signature, placement: Placement) -> Selected | None:
    """The lists that an op selects of blocks; None if it does not select along a placed index."""
    found = [(i, selects) for i, _ in placement for selects in signature.indices[i].parts(Selection)]
    if not found:
        return None
    index, selects = found[0]
    at, own = signature.operand_at[0], [factor for i, factor in placement if i == index]
    # One list of each device, whether its elements are one block or are dealt in turn.
    minor = sorted(own, key=lambda factor: factor.stride)
    sizes = accumulate((factor.size for factor in minor), mul, initial=selects.best)
    lists = [(index, factor.at(stride)) for factor, stride in zip(minor, sizes, strict=False)]
    others = tuple(each for each in placement if each[0] != index)
    shape, dim = list(signature.shapes[0][0]), at[index].dim
    shape[dim] = max(factor.span for _, factor in lists)
    apart, gathered = (_layout(tuple(shape), at, each) for each in ((*others, *lists), others))
    return Selected(dim, apart, gathered)


def _merged(signature: Signature, placement: Placement, produced: Sequence[Layout]) -> Merge | None:
    """The step that merges the blocks of an op; None if it does not merge along a placed index."""
    for index, merging in ((i, merging) for i, _ in placement for merging in signature.indices[i].parts(Merging)):
        factors = [factor for i, factor in placement if i == index]
        step = Merge.of_blocks(merging, signature.result_at[0][index].dim, factors, produced[0].local_shape)
        loops = tuple(each.axis for i, each in placement if i != index and isinstance(each.place, Loop))
        return replace(step, bytes=0 if step.is_in_time else step.bytes, loops=loops)
    return None


def _is_plain(signature: Signature, placement: Placement) -> bool:
    for index in {index for index, _ in placement}:
        info, factors = signature.indices[index], [factor for at, factor in placement if at == index]
        if overhang(info.extent, factors) or any(requirements(info, index, Placing.of(info.extent, factors))):
            return False
    return True


@dataclass(slots=True)
class Placements:
    """Every op's `OpPlacement`, every value's home layout, and the sources of pending sums."""

    table: Table
    program: Program
    nodes: list[OpPlacement]
    pinned: dict[ValueId, Layout] = field(default_factory=dict[ValueId, Layout])
    reduced_at_def: dict[ValueId, Unreduced] = field(default_factory=dict[ValueId, Unreduced])
    """Pending reductions that resolve at once: scans of blocks, folds without a collective, sums of ops that run on one device,
    and sums that ops carry into values that a tactic placed."""
    homes: list[Layout] = field(default_factory=list[Layout])
    """Each value's own layout; its uses may need others."""
    sources: dict[ValueId, Unreduced] = field(default_factory=dict[ValueId, Unreduced])
    returns: dict[ValueId, list[int]] = field(default_factory=dict[ValueId, list[int]])
    each_trip: frozenset[ValueId] = frozenset()
    """The values that are sent in each trip of loops, and not once for all trips."""
    elsewhere: Elsewhere = field(default_factory=dict[NodeId, Mapping[Place, Instead]])
    """The ops that do not take the table's claims, with what they take instead."""
    results: dict[ValueId, Layout] = field(default_factory=dict[ValueId, Layout])
    """The layouts in which ops return their results that are placed otherwise than the table says: those of the table."""
    opened: dict[tuple[ValueId, Place], bool] = field(default_factory=dict[tuple[ValueId, Place], bool])
    """Results -> the axes on which no claim reached them because it stopped, for those that were asked for."""
    stops: dict[Place, Set[NodeId]] = field(default_factory=dict[Place, Set[NodeId]])
    """The ops at which claims on an axis stop, or are in conflict, for the axes that were asked for."""

    def __repr__(self) -> str:
        return f"Placements({len(self.nodes):,} ops)"

    def copy(self) -> Placements:
        """Placements in which ops can be placed otherwise, while these stay as they are."""
        results, sources, at_def = dict(self.results), dict(self.sources), dict(self.reduced_at_def)
        nodes, homes = [*self.nodes], [*self.homes]
        return replace(self, nodes=nodes, homes=homes, results=results, sources=sources, reduced_at_def=at_def)

    def claim(self, number: NodeId, axis: Place) -> Claim | None:
        """The claim that an op takes on an axis; None if it has none, as on an axis on which no tactic has placed anything."""
        if (instead := self.elsewhere.get(number, {}).get(axis)) is not None:
            return instead.claim
        table = self.table.axes.get(axis)
        return None if table is None else table.nodes[number]

    def reaches(self, number: NodeId, axis: Place) -> bool:
        """Whether claims on an axis reach an op: one places it, or some stop there or are in conflict."""
        if (claims := self.table.axes.get(axis)) is None or claims.nodes[number] is not None:
            return claims is not None
        if (found := self.stops.get(axis)) is None:
            found = self.stops[axis] = self.table.stops(axis)
        return number in found

    def with_sums(self, value: ValueId) -> Layout:
        """A value's own layout, with the sums that are pending in it."""
        return self.homes[value].with_pending(self.sources.get(value, ()))

    def uses(self, value: ValueId) -> list[tuple[NodeId, int]]:
        """The uses of a value; returning it is a use by a node one past the last."""
        inside, returned = self.program.uses[value], self.returns.get(value)
        if returned is None:
            return inside
        end = self.program.end
        return [*inside, *((end, position) for position in returned)]

    def wanted(self, number: NodeId, position: int) -> Layout:
        """The layout that a use needs."""
        if number < len(self.nodes):
            return self.nodes[number].wanted[position]
        return boundary(self, self.program.returned[position])

    def outside(self, value: ValueId, lies: Layout) -> Layout:
        """The layout at the program's boundary of an argument or a result that lies so inside.

        A result goes back to where claims have it, but not along an axis on which its claims stopped: there it stays, and what
        is pending is scattered. It has contiguous blocks, because a NamedSharding can express only these.
        """
        claimed = self.results.get(value, self.homes[value]).natural
        if lies is claimed:
            return claimed
        # What is pending over a loop is folded at the boundary.
        pending = tuple(each for each in lies.pending if not isinstance(each.axis, Loop))
        lies = lies.with_pending(()).natural
        if value in self.results and pending and all(self.is_open(value, each.axis) for each in pending):
            lies = scattered(lies, [each.axis for each in pending])
        moved = {factor.axis for _, factor in {*claimed.factors} ^ {*lies.factors}}
        return lies if moved and all(self.is_open(value, axis) for axis in moved) else claimed

    def is_open(self, value: ValueId, axis: Place) -> bool:
        """Whether a result has no claim on an axis because the claims of what it is made of stopped, or were in conflict."""
        if (found := self.opened.get((value, axis))) is None:
            table = self.table
            is_free = axis in table.axes and table.claim(value, axis) is None
            found = self.opened[value, axis] = is_free and table.is_stopped(value, axis)
        return found

    def lies(self, number: NodeId, position: int, value: ValueId) -> Layout:
        """The layout in which a use finds a value, with its sums: the value's own, but after a loop that of its carry."""
        if self.program.from_outside(number, position):
            return self.nodes[self.program.producer[value]].produced[0].with_pending(self.sources.get(value, ()))
        return self.with_sums(value)

    def unsettled(self) -> Iterator[tuple[ValueId, Layout]]:
        """The values that move where they are made: in which layout, with pending sums, their ops leave them.

        These are values that a tactic placed otherwise than their ops do, and arguments that lie otherwise at the boundary. A
        pending scan is resolved at once, because no op can read it. So is the sum of an op that runs on one device: other ops
        cannot compute with the zeros of the other devices, because `0 / 0` is not 0.
        """
        for value in dict.fromkeys((*self.pinned, *self.reduced_at_def)):
            left = self.left(value)
            if left is not None and left != self.homes[value]:
                yield value, left
        for value in self.program.arguments:
            outside = boundary(self, value)
            if outside != self.homes[value]:
                yield value, outside

    def left(self, value: ValueId) -> Layout | None:
        """The layout in which its op leaves a value that is settled where it is made, with what is pending; None for others."""
        pend = self.reduced_at_def.get(value)
        if value in self.pinned:
            node = self.program.made_by(value)
            placed, at = self.nodes[node.number], node.results.index(value)
            return placed.produced[at].with_pending(placed.pending[at] if pend is None else pend)
        return None if pend is None else self.homes[value].with_pending(pend)

    def made(self, value: ValueId) -> Unreduced:
        """What is pending in a value where its op leaves it."""
        return self.sources.get(value) or self.reduced_at_def.get(value, ())

    def set_sum(self, node: Node, made: Unreduced) -> None:
        """Says that an op's results are this sum. One that a tactic placed is resolved at once."""
        for value in node.results:
            (self.reduced_at_def if value in self.pinned else self.sources)[value] = made

    def put(self, node: Node, placed: OpPlacement) -> None:
        """Sets an op's placement and its results' home layouts; the sources of pending sums stay as they are."""
        self.nodes[node.number] = placed
        for value, layout in zip(node.results, placed.produced, strict=True):
            self.homes[value] = self.pinned.get(value, layout)

    def put_otherwise(self, node: Node, placed: OpPlacement) -> None:
        """Sets an op's placement, but leaves the layouts of the program's results as claims have them."""
        for value, layout in zip(node.results, self.nodes[node.number].produced, strict=True):
            if value not in self.pinned:
                self.results.setdefault(value, layout)
        self.put(node, placed)

    def carry(self, node: Node, pend: Unreduced) -> None:
        """Lets an op carry a sum: it runs on all devices of the sum's axes, and its result is the sum too."""
        placed = self.reduced(node, pend)
        self.put(node, placed)
        made = placed.with_sum(pend)
        assert made is not None, "an op that carries a sum makes it no other fold"
        self.set_sum(node, made)

    def without(self, node: Node, axes: Set[Place]) -> OpPlacement:
        """The op's placement without some axes."""
        return place_op(node.signature, self.kept(node, axes))

    def reduced(self, node: Node, pend: Unreduced) -> OpPlacement:
        """The op's placement without the pending axes."""
        known = self.nodes[node.number].reduced
        if (found := known.get(pend)) is None:
            found = known[pend] = self.without(node, {each.axis for each in pend})
        return found

    def kept(self, node: Node, axes: Set[Place]) -> Placement:
        """The op's factors on all axes but these."""
        placement = self.nodes[node.number].placement
        return tuple([each for each in placement if each[1].axis not in axes]) if placement else placement

    def axes(self, node: Node) -> set[Place]:
        """The axes on which the op is placed."""
        return {factor.axis for _, factor in self.nodes[node.number].placement}

    def keeps(self, node: Node, pend: Unreduced) -> bool:
        """Whether each index's factors without the pending axes still fit the index; with windows, they may not."""
        placement = self.nodes[node.number].placement
        if len(placement) < 2:
            return True
        axes = {each.axis for each in pend}
        after = self.kept(node, axes)
        lost = {index for index, factor in placement if factor.axis in axes}
        left = ((index, [factor for at, factor in after if at == index]) for index in lost)
        return all(misfit(node.signature, index, factors) is None for index, factors in left if factors)

    def width(self, value: ValueId) -> int:
        """The bytes of an element of the value."""
        return itemsize(self.program.types[value].dtype)

    def local_bytes(self, value: ValueId, layout: Layout) -> int:
        """The local bytes of the value on one device in this layout."""
        return _local_bytes(layout, self.program.types[value].dtype)

    def held(self, node: Node, placed: OpPlacement) -> int:
        """The bytes of what an op makes on one device, if it is placed so."""
        return sum(map(self.local_bytes, node.results, placed.produced))

    def home_bytes(self, value: ValueId) -> int:
        """The local bytes of the value where it lies."""
        return self.local_bytes(value, self.homes[value])

    def way(self, value: ValueId, source: Layout, target: Layout) -> Path:
        """The path by which the value changes its layout."""
        return path(source, target, self.width(value))

    def misses(self, value: ValueId, source: Layout, target: Layout) -> Bytes:
        """The bytes that a device at least receives: of dims of which it has other parts, and of sums.

        Only where it has other blocks or windows of a dim on the same axis, a search tells how much of what it wants they hold.
        """
        return 0 if source == target else _misses(source, target, self.program.types[value].dtype)

    def trips(self, value: ValueId) -> int:
        """How often one call is assumed to compute the value."""
        return self.program.likely_trips(self.program.region[value])


@lru_cache(maxsize=1 << 16)
def _local_bytes(layout: Layout, dtype: str) -> int:
    # Thousands of values have a few hundred layouts.
    return prod(layout.local_shape) * itemsize(dtype)


@lru_cache(maxsize=1 << 16)
def _misses(source: Layout, target: Layout, dtype: str) -> Bytes:
    if overlaps(source, target):
        return path(source, target, itemsize(dtype)).bytes
    local, kept = _local_bytes(target, dtype), {*target.factors}
    found = share(local, prod(factor.size for dim, factor in source.factors if (dim, factor) not in kept))
    for pend in source.pending:
        others = pend.axis.size - 1
        if pend in target.pending:
            continue
        if pend.scans:
            # The totals of the blocks before.
            found += local // max(1, target.local_shape[pend.dim]) * others
        else:
            found += local * others if pend.axis in target.axes else share(local, pend.axis.size, times=2)
    return found


@lru_cache(maxsize=1 << 14)
def overlaps(source: Layout, target: Layout) -> bool:
    """Whether devices may have parts of what they are to have: a dim is on the same axis in both, by another factor."""
    kept, axes = {*target.factors}, {(dim, factor.axis) for dim, factor in target.factors}
    return any((dim, factor) not in kept and (dim, factor.axis) in axes for dim, factor in source.factors)


def read_table(table: Table, elsewhere: Elsewhere) -> Placements:
    """Reads the whole table: each value's layout from its producer, then the values that tactics placed directly."""
    program = table.program
    pinned = _pinned(table)
    nodes, results = _all_placed(table), dict[ValueId, Layout]()
    for number, instead in elsewhere.items():
        claims = {axis: claims.nodes[number] for axis, claims in table.axes.items()}
        claims |= {axis: each.claim for axis, each in instead.items()}
        made = zip(program.nodes[number].results, nodes[number].produced, strict=True)
        results |= {value: layout for value, layout in made if value not in pinned}
        nodes[number] = place_op(program.nodes[number].signature, placement_of(claims))
    placements = Placements(table, program, nodes, pinned, elsewhere=elsewhere, results=results, each_trip=table.each_trip)
    return placed_so(placements, {value: table.layout(value) for value in program.arguments})


def placed_so(placements: Placements, arguments: Mapping[ValueId, Layout]) -> Placements:
    """Completes placements that have every op's: with these layouts of arguments, and what ops leave as their results."""
    program, nodes = placements.program, placements.nodes
    homes = placements.homes = [type.layout for type in program.types]
    sources, reduced_at_def = placements.sources, placements.reduced_at_def
    returned = frozenset(program.returned)
    made, produced = (node.results for node in program.nodes), (placed.produced for placed in nodes)
    every = zip(chain.from_iterable(made), chain.from_iterable(produced), strict=True)
    for value, layout in chain(arguments.items(), every):
        homes[value] = layout
    for node, placed in zip(program.nodes, nodes, strict=True):
        for value, pend in zip(node.results, placed.pending, strict=True) if any(placed.pending) else ():
            if pend:
                at_once = any(each.scans or each.is_gathered for each in pend) or (
                    node.signature.once and bool(program.uses[value] or value in returned)
                )
                (reduced_at_def if at_once else sources)[value] = pend
    for value, layout in placements.pinned.items():
        homes[value] = layout
        sources.pop(value, None)
        reduced_at_def.pop(value, None)
    for position, value in enumerate(program.returned):
        placements.returns.setdefault(value, []).append(position)
    return placements


def _all_placed(table: Table) -> list[OpPlacement]:
    """Every op under its claims along all axes."""
    axes = major_to_minor(table.axes)
    claims = zip(*(table.axes[axis].nodes for axis in axes), strict=True) if axes else repeat((), len(table.program.nodes))
    known: dict[object, OpPlacement] = {}
    placed: list[OpPlacement] = []
    for node, claimed in zip(table.program.nodes, claims, strict=True):
        key = node.signature, claimed
        found = known.get(key)
        if found is None:
            found = known[key] = place_op(node.signature, tuple([claim[:2] for claim in claimed if claim is not None]))
        placed.append(found)
    return placed


def _pinned(table: Table) -> dict[ValueId, Layout]:
    """The values inside the program that a tactic placed or replicated directly."""
    producer = table.program.producer
    own = set[ValueId]()
    for each in table.axes.values():
        claims = zip(table.program.values, each.values, strict=True)
        own.update([value for value, claim in claims if claim is not None and producer[value] >= 0])
    return {value: table.layout(value) for value in own}


def scattered(layout: Layout, axes: Iterable[Place]) -> Layout:
    """The layout with these axes too, each on the first dim whose blocks it divides; without those that divide none."""
    for axis in axes:
        dims = (dim for dim, length in enumerate(layout.local_shape) if length and length % axis.size == 0)
        if (dim := next(dims, None)) is not None:
            factor = Factor(axis, layout.local_shape[dim] // axis.size)
            layout = Layout.of(layout.global_shape, [*layout.factors, (dim, factor)])
    return layout


def boundary(placements: Placements, value: ValueId) -> Layout:
    """The layout at the program's boundary."""
    return placements.outside(value, placements.with_sums(value))
