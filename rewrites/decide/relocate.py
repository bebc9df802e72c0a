"""Lets ops run elsewhere than claims say, if that costs less: along another of their indices, or on all devices.

An earlier tactic wins at an op that it shares with a later one: what the later one stores in parts is gathered. Where the op's
other operands and its result are smaller, it runs along the stored dim, and these move instead. So do the ops around it, as far
as that pays (`place_by_cut.py`). Where a claim stops, or several meet in a conflict, the op may run along any index too.

    %t {data*512, 128}, %i {data*64}:  gather %t, %i   -->   %i is gathered, and %r{+data} is scattered; %t stays where it is

An op that looks elements up, or computes little, may also run on all devices, and a sum may wait in ops that compute little.
The work of other ops stays divided as tactics divide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import fit
from ..program.in_order import InOrder
from ..program.independent_parts import parts
from ..program.program import Node, NodeId, ValueId
from .choices import Alternative, Moving, Ways, sent_over
from .deferred_reductions import DeferredReduction, carried_sum, is_sum, makers
from .free_ops import FreeOps, index_of
from .place_by_cut import Best, best_of, better
from .placements import Elsewhere, Instead, OpPlacement, Placements, Unreduced
from .propagate import Sweep
from .table import Claim, Table

GROWTH = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""By how many ops a region grows at a time, as long as its first op would move."""

NEAR = 64
"""A region of more ops leads on only from those that would move, and is not tried again from each of them."""

FEW_AXES = 2
"""With how many placed axes the ops at both ends of a value are tried along all of their indices."""

TWINS = 8
"""How many uses a value may have for ops alike to be tried together."""

ROUNDS = 8
"""How often all ops are tried, as long as any of them moves."""

Claims = dict[NodeId, Claim | None]
"""Op -> the claim that it takes along an axis; None: it is not placed on the axis."""


Key = tuple[NodeId, Place, Claim | None]
"""An op, and what it could do on an axis."""


class Promising(NamedTuple):
    """The indices that are tried for all ops like one, and the ops of the regions of which this was found."""

    indices: dict[int | None, None]
    ops: set[NodeId]


class Option(NamedTuple):
    """Claims that ops could follow along an axis, and the value for which they do."""

    axis: Place
    claims: Claims
    value: ValueId
    follows: bool
    """Whether this is the claim of a layout in which the value lies or is wanted."""
    along: int | None
    """The index along which an op runs; None: all devices run it."""
    promising: Promising

    @property
    def keys(self) -> dict[Key, None]:
        """What each op would do."""
        return {(number, self.axis, claim): None for number, claim in self.claims.items()}


class Step(NamedTuple):
    """What saves the most of some options: the option, and those of its ops that move."""

    option: Option
    best: Best


class Relocated(NamedTuple):
    """The placements in which ops run elsewhere, and the sums that ops then carry."""

    placements: Placements
    carried: dict[NodeId, DeferredReduction]
    nearly: Elsewhere | None
    """The ops that could run elsewhere too, which would save too little time to depart from the tactics' order.

    None if some part of the program was not tried.
    """


def relocated(
    placements: Placements,
    carried: Mapping[NodeId, DeferredReduction],
    moving: Sequence[ValueId],
    is_tried: Callable[[ValueId], bool],
    least: float,
) -> Relocated:
    """Lets ops run elsewhere, in parts of the program that are tried. `moving`: values that change layout.

    `least`: the seconds that ops have to save for others to be tried with them.
    """
    search = _Search(placements.copy(), dict(carried), is_tried, least)
    for _ in range(ROUNDS):
        steps = [search.improve(group) for group in search.groups(moving)]
        steps += [search.best_step([*filter(None, search.options(number, axis))]) for number, axis in search.unplaced()]
        if not search.take([step for step in steps if step is not None]):
            break
    search.go_back()
    search.placements.elsewhere = found = {number: moved for number, moved in search.found.items() if moved}
    nearly = {number: moved for number, moved in search.nearly.items() if number not in found}
    return Relocated(search.placements, search.carried, nearly if search.are_all_tried else None)


class _Search:
    """Tries the ops around all mismatches, round after round. Of what pays in a round, what saves the most is done first."""

    def __init__(
        self,
        placements: Placements,
        carried: dict[NodeId, DeferredReduction],
        is_tried: Callable[[ValueId], bool],
        least: float,
    ) -> None:
        self.ops = FreeOps(placements, carried)
        self.part, self.is_tried = parts(placements.program), is_tried
        self.least, self.are_all_tried = least, True
        """Whether no part of the program was left out, and no region that would save little."""
        self.is_many = len(placements.table.axes) > FEW_AXES
        self.placements, self.program, self.table = placements, placements.program, placements.table
        self.carried, self.choices, self.found = carried, self.ops.choices, self.ops.found
        self.nearly = dict[NodeId, dict[Place, Instead]]()
        """What would save too little time."""
        self.steps = dict[Place, list[Set[NodeId]]]()
        """The ops that have left together where the tactics put them."""
        self.tried: dict[Key, Set[NodeId]] = {}
        """The ops of the region in which this was tried."""
        self.paying = set[Key]()
        """What was tried together with something that pays, and may pay too."""
        self.covered: dict[Key, Set[NodeId]] = {}
        """The same, of large regions, which are not tried from each of their ops."""
        self.hopeless: dict[object, Set[NodeId]] = {}
        """Kinds of moves about which nothing can be done -> the ops of the regions that were tried."""
        self.promising: dict[object, Promising] = {}
        """These four hold until something changes next to such a region."""
        self.touched = set[NodeId]()
        """The ops of all regions that were tried for some moves."""
        self.known_ways: dict[tuple[NodeId, Place, object, Unreduced], Alternative | None] = {}

    def groups(self, moving: Iterable[ValueId]) -> Iterable[Sequence[Moving]]:
        """The moves of these values, and of those around ops that were moved, as things are now: those of one op together."""
        groups, nodes = dict[NodeId, list[Moving]](), [self.program.nodes[number] for number in self.found]
        around = (value for node in nodes for value in (*node.operands, *node.results))
        moves = (each for value in dict.fromkeys((*moving, *around)) for each in self.mismatches(value))
        for each in [*moves, *self.compared()]:
            if self.is_in(each.value):
                first = each.uses[0][0] if each.uses else self.program.producer[each.value]
                groups.setdefault(first, []).append(each)
        return groups.values()

    def mismatches(self, value: ValueId) -> Iterable[Moving]:
        """The moves of a value between two layouts as things are now, as one with the uses of all."""
        found = dict[tuple[Layout, Layout], list[Moving]]()
        for move in self.choices.moves(value, {}):
            if move.source != move.target:
                found.setdefault((move.source, move.target), []).append(move)
        return [moves[0]._replace(uses=[use for move in moves for use in move.uses]) for moves in found.values()]

    def is_in(self, value: ValueId) -> bool:
        """Whether a value is in a part of the program that is tried."""
        found = self.is_tried(self.part[value])
        self.are_all_tried &= found
        return found

    def improve(self, group: Sequence[Moving]) -> Step | None:
        """What could best be done about moves to one op. Layers are alike: what does not help one is not tried for another."""
        self.touched = set[NodeId]()
        kinds = [(each, self.kind(each)) for each in group]
        if all(kind in self.hopeless for _, kind in kinds):
            return None
        found = [option for each, kind in kinds if kind not in self.hopeless for option in self.around(each)]
        options = [option for option in found if option is not None]
        # First along the dims on which values lie or are wanted, then along all others; over many axes one after another.
        first, rest = ([each for each in options if each.follows is follows] for follows in (True, False))
        in_turn = [[each] for each in options] if self.is_many else [first, rest]
        step = next((step for each in in_turn if each and (step := self.best_step(each)) is not None), None)
        if step is None and None not in found:
            self.hopeless.update((kind, self.touched) for _, kind in kinds if kind not in self.hopeless)
        return step

    def kind(self, each: Moving) -> object:
        """What a move has in common with those of other layers: its layouts, and the ops at its ends."""
        program, placed = self.program, self.placements.nodes
        maker, ends = program.maker(each.value), (use for use in each.uses if use[0] < program.end)
        made = None if maker is None else (maker.signature, id(placed[maker.number]))
        read = ((program.nodes[number].signature, id(placed[number]), at) for number, at in ends)
        return each.source, each.target, made, *read

    def around(self, each: Moving) -> Iterator[Option | None]:
        """What the ops at both ends of a move could do instead, on the axes on which the value changes its layout."""
        axes, is_sum = sent_over(each.source, each.target), bool(each.source.pending)
        makers_ = makers(self.placements, self.carried, each.value) if is_sum else [self.program.maker(each.value)]
        ends = [node.number for node in makers_ if node is not None]
        ends += [number for number, _ in each.uses if number < self.program.end]
        for axis in sorted(axes):
            for number in dict.fromkeys(ends):
                yield from self.options(number, axis, each)

    def unplaced(self) -> Iterator[tuple[NodeId, Place]]:
        """The ops that run whole along an axis because a claim has stopped there, or several are in conflict."""
        table, nodes = self.table, self.program.nodes
        for number, _, axis in () if self.ops.is_wide else (*table.conflicts, *table.blocked):
            here = 0 <= number < self.program.end and axis not in self.placements.axes(nodes[number])
            if here and self.is_in(nodes[number].main):
                yield number, axis

    def compared(self) -> Iterator[Moving]:
        """What is read by ops that merge or select, as if it were gathered along all axes of the op."""
        for node, placed in zip(self.program.nodes, self.placements.nodes, strict=True):
            if placed.merged is not None or placed.selected is not None:
                lies, axes = self.placements.homes[node.operands[0]], self.placements.axes(node)
                left = _without(lies, axes)
                yield Moving(node.operands[0], lies, left, 1, [(node.number, 0)])

    def options(self, number: NodeId, axis: Place, mismatch: Moving | None = None) -> Iterator[Option | None]:
        """What an op could do along an axis: run along another index, or on all devices, and the ops around it too.

        None for what it would do in a region that was tried from another op.
        """
        node = self.program.nodes[number]
        if self.ops.may_move(node, axis):
            followed = set[int]() if mismatch is None else _followed(node, axis, mismatch)
            kind = self.surroundings(node), axis, frozenset(followed) if self.is_many else None
            if (promising := self.promising.get(kind)) is None:
                indices = dict.fromkeys(followed if self.is_many else self.ops.indices(node, axis))
                promising = self.promising[kind] = Promising(indices, {number})
            for index in [*promising.indices]:
                if self.covered and self.is_covered(node, axis, index):
                    yield None
                    continue
                value = node.results[0] if mismatch is None else mismatch.value
                alone = self.grown(node, [], axis, index, promising.ops)
                twins = [] if index is None or self.is_many else self.twins(node, axis, index)
                together = self.grown(node, twins, axis, index, promising.ops) if twins else None
                found = [claims for claims in (alone, None if together == alone else together) if claims is not None]
                if not found:
                    promising.indices.pop(index)
                for claims in found:
                    option = Option(axis, claims, value, index in followed, index, promising)
                    if len(claims) > NEAR:
                        self.covered |= dict.fromkeys(option.keys, claims.keys())
                    yield option
                    if index is not None and not self.is_many and (before := self.before(node, axis, claims)):
                        yield option._replace(claims=claims | before)
            self.touched |= promising.ops

    def is_covered(self, node: Node, axis: Place, index: int | None) -> bool:
        """Whether a large region was tried in which the op would run along an index, or on all devices."""
        claim = None if index is None else self.ops.claim(node, axis, index)
        return (node.number, axis, claim) in self.covered

    def grown(self, node: Node, twins: Sequence[Node], axis: Place, index: int | None, seen: set[NodeId]) -> Claims | None:
        """The ops that could run along an index with an op, or on all devices; None if the op would stay where it is.

        `twins` are tried with it. The ops that were looked at are added to `seen`.

        What a region saves is told as if the ops beyond it followed at no cost, and saved all that moves for them. If its first
        op would stay even so, it stays in any case. A large region leads on only from ops that would move.
        """
        if (region := self.region(node, twins, axis, index)) is None:
            return None
        side: Set[NodeId] = {node.number}
        for most in GROWTH:
            region.lead(side if len(region.found) > NEAR else region.waiting.keys(), most)
            # Ops that left earlier may go on elsewhere, or back, for any saving.
            is_open = len(region.found) <= NEAR or any(not step.isdisjoint(region.found) for step in self.steps.get(axis, ()))
            least = 0 if is_open else self.least
            side = self.side(node, axis, region, region.found, least, seen)
            if node.number not in side and index is not None and (whole := self.before(node, axis, region.found)):
                side = self.side(node, axis, region, region.found | whole, least, seen)
            if node.number not in side:
                self.are_all_tried &= not least
                return None
            if not region.waiting or (len(region.found) > NEAR and side.isdisjoint(region.waiting)):
                break
        return region.found

    def side(
        self, node: Node, axis: Place, region: _Whole | _Around, claims: Claims, least: float, seen: set[NodeId]
    ) -> Set[NodeId]:
        """The ops of a region that would move under these claims if those beyond it followed: with an op, if it would move."""
        ways = self.ways(axis, {number: claim for number, claim in claims.items() if number not in region.waiting})
        every, found = ways | self.ways(axis, claims), Ways()
        seen.update(claims, every)
        for found in better(self.choices, every, ways.keys(), least):
            if node.number in found:
                break
        return found.keys()

    def before(self, node: Node, axis: Place, claims: Claims) -> Claims:
        """The ops before an op that could be computed whole: what is read in several layouts."""
        makers = (self.program.producer[value] for value in node.operands)
        every = (each for each in dict.fromkeys((*claims, *makers)) if 0 <= each < node.number)
        return {each: None for each in every if self.may_be_whole(each, axis)}

    def best_step(self, options: list[Option]) -> Step | None:
        """The option that saves the most, if that pays. Options that were tried are left out.

        What saves too little is noted. Where nothing pays, the indices are not tried for ops like these.
        """
        new, ways = list[Option](), list[Ways]()
        for each in options:
            if not (keys := each.keys.keys()) <= self.tried.keys():
                new.append(each)
                ways.append(self.ways(each.axis, each.claims))
                ops = {*each.claims, *ways[-1]}
                self.tried |= dict.fromkeys(keys, ops)
        best = best_of(self.choices, ways, lambda option, moved: self.departs(new[option].axis, moved.keys()))
        if best is not None and best.pays:
            self.paying.update(*(each.keys for each in new))
            return Step(new[best.option], best)
        if best is not None:
            # An op that would only carry a sum has nothing to say.
            chosen = new[best.option]
            self.note(self.nearly, chosen, best, best.ways.keys() & chosen.claims.keys())
        for each in options:
            each.promising.indices.pop(each.along, None)
        return None

    def take(self, steps: Iterable[Step]) -> bool:
        """Places ops as these steps say, those that save the most first; returns whether any op has moved.

        A step next to which others have moved is taken if it still pays.
        """
        near = set[NodeId]()
        """What is next to values that have changed their layouts, or are wanted in others."""
        self.reopen()
        for found in sorted(steps, key=lambda step: -step.best.saved):
            is_far = near.isdisjoint(found.option.claims) and near.isdisjoint(found.best.ways)
            step = found if is_far else self.best_step([found.option])
            if step is None:
                continue
            axis, moved = step.option.axis, step.best.ways.keys()
            self.note(self.found, step.option, step.best, moved)
            self.steps[axis] = [each for each in self.steps.get(axis, ()) if not each <= moved] + [moved]
            near |= self.put(step.best.ways)
        return bool(near)

    def reopen(self) -> None:
        """Drops what was found of ops for which something pays: it only saved less than what is done first, or the same."""
        ops = {number for number, _, _ in self.paying}
        self.tried = {key: each for key, each in self.tried.items() if key not in self.paying}
        self.hopeless = {key: each for key, each in self.hopeless.items() if ops.isdisjoint(each)}
        self.promising = {key: each for key, each in self.promising.items() if ops.isdisjoint(each.ops)}
        self.paying.clear()

    def put(self, ways: Ways) -> Set[NodeId]:
        """Places ops otherwise, and drops what held until something changed next to a region; returns what is next to it."""
        near = self.choices.put(ways)
        for cache in (self.tried, self.covered):
            for key in [key for key, ops in cache.items() if not near.isdisjoint(ops)]:
                del cache[key]
        self.hopeless = {kind: ops for kind, ops in self.hopeless.items() if near.isdisjoint(ops)}
        self.promising = {kind: each for kind, each in self.promising.items() if near.isdisjoint(each.ops)}
        for key in [key for key in self.known_ways if key[0] in ways]:
            del self.known_ways[key]
        self.ops.forget(ways.keys())
        return near

    def note(self, where: dict[NodeId, dict[Place, Instead]], chosen: Option, best: Best, numbers: Iterable[NodeId]) -> None:
        """Notes what these ops do."""
        for number in numbers:
            where.setdefault(number, {})[chosen.axis] = Instead(chosen.claims.get(number), chosen.value, best.saved)

    def departs(self, axis: Place, moved: Set[NodeId]) -> bool:
        """Whether ops leave the order of the tactics by one step more. They do not if they replace all of an earlier step."""
        return not any(step <= moved for step in self.steps.get(axis, ()))

    def go_back(self) -> None:
        """Places each op as claims say again if that costs less, now that others have moved."""
        for number, axis in [(number, axis) for number, moved in self.found.items() for axis in moved]:
            best = best_of(self.choices, [self.ways(axis, {number: self.table.axes[axis].nodes[number]})])
            if best is not None:
                self.put(best.ways)
                self.found[number].pop(axis)

    def surroundings(self, node: Node) -> object:
        """What an op reads and makes, and how. Layers are alike: what one of them shows holds for the others."""
        reads = tuple(map(self.placements.with_sums, node.operands))
        wanted = [self.placements.wanted(*use) for value in node.results for use in self.placements.uses(value)]
        return node.signature, self.placements.nodes[node.number], reads, tuple(wanted)

    def may_be_whole(self, number: NodeId, axis: Place) -> bool:
        return self.ops.may_be_whole(self.program.nodes[number], axis)

    def region(self, node: Node, twins: Sequence[Node], axis: Place, index: int | None) -> _Whole | _Around | None:
        """The op that could run along an index, or on all devices, for others to follow it; None if it could not."""
        if self.ops.along(node, axis, index) is None:
            return None
        if index is None:
            return _Whole(node, axis, self)
        if (claim := self.ops.claim(node, axis, index)) is None:
            return None
        table = replace(self.table, axes={**self.table.axes}, blocked={}, conflicts={}, reconciled={}, too_wide={})
        nodes = table.blank(axis).nodes
        for each in (node, *twins):
            nodes[each.number] = self.ops.claim(each, axis, index)
        return _Around(table, axis, claim.tactic, self, [node, *twins])

    def twins(self, node: Node, axis: Place, index: int) -> list[Node]:
        """The ops like one that read what it reads, if few do: they could share what moves for them along an index."""
        found = dict[NodeId, Node]()
        for value in node.operands:
            uses = self.program.uses[value]
            readers = (self.program.nodes[user] for user, _ in uses if len(uses) <= TWINS and user < self.program.end)
            found |= {each.number: each for each in readers if each.signature is node.signature and each is not node}
        every = (each for each in found.values() if self.ops.may_move(each, axis))
        return [each for each in every if self.ops.claim(each, axis, index) is not None]

    def ways(self, axis: Place, claims: Claims) -> dict[NodeId, Alternative]:
        """The placements of ops under these claims, and of the ops downstream in which their sums may wait, or waited."""
        found, ahead = dict[NodeId, Alternative](), InOrder(claims)
        for number in ahead:
            node = self.program.nodes[number]
            claim, is_asked = claims.get(number), number in claims
            waits = self.carrying(node, axis, found, is_asked) if claim is None else ()
            moves = is_asked or waits or self.carries(number, axis)
            way = self.way(node, axis, claim, waits) if moves else None
            if way is None:
                continue
            found[number] = way
            # What carried the op's sum carries another one now, or none.
            uses = self.program.uses[node.main]
            ahead.update([user for user, _ in uses if way.pend or (user in self.carried and user > number)])
        return found

    def carries(self, number: NodeId, axis: Place) -> bool:
        """Whether an op carries a sum over an axis now. What a loop carries stays a sum."""
        carries = any(each.axis == axis for each in carried_sum(self.carried, number))
        return carries and not self.program.nodes[number].is_border

    def way(self, node: Node, axis: Place, claim: Claim | None, waits: Unreduced) -> Alternative | None:
        """How an op is placed under a claim, or to let a sum wait; None if it cannot be."""
        key = node.number, axis, claim, waits
        if key not in self.known_ways:
            placed = self.ops.under(node, axis, claim)
            self.known_ways[key] = None if placed is None else _alternative(placed, waits)
        return self.known_ways[key]

    def carrying(self, node: Node, axis: Place, found: Mapping[NodeId, Alternative], is_asked: bool) -> Unreduced:
        """The sum that an op could carry, if its operands' ops are placed as in `found`; () if it could not.

        An op that is asked to move could also carry a sum that another op makes as it is now.
        """
        now = self.placements.sources if is_asked else dict[ValueId, Unreduced]()
        ways = ((at, value, found.get(self.program.producer[value])) for at, value in enumerate(node.operands))
        every = ((at, now.get(value, ()) if way is None else self.choices.pending(value, way)) for at, value, way in ways)
        if not (sums := {at: pend for at, pend in every if pend}):
            return ()
        pend = next(iter(sums.values()))
        axes = {each.axis for each in pend}
        same = axis in axes and is_sum(pend) and all(each == pend for each in sums.values())
        alone = not (axes - {axis}) & self.placements.axes(node)
        return pend if same and alone and self.ops.may_wait(node.number, frozenset(sums)) else ()


def _followed(node: Node, axis: Place, mismatch: Moving) -> set[int]:
    """The indices of an op that run along the dims on which a value that changes its layout lies or is wanted."""
    dims = {dim for dim, factor in (*mismatch.source.factors, *mismatch.target.factors) if factor.axis == axis}
    found = (index_of(at, dim) for value, at in node.ends if value == mismatch.value for dim in dims)
    return {index for index in found if index is not None}


def _without(layout: Layout, axes: Set[Place]) -> Layout:
    """The layout without these axes. A dim on which the others are no layout then, as one that is padded for all, is whole."""
    shape, kept = layout.global_shape, [each for each in layout.factors if each[1].axis not in axes]
    fits = {dim for dim, extent in enumerate(shape) if fit(extent, [factor for on, factor in kept if on == dim])}
    return Layout.of(shape, [each for each in kept if each[0] in fits])


def _alternative(placed: OpPlacement, waits: Unreduced) -> Alternative | None:
    """The placement with the sum that the op then makes, and the one that it carries; None if it makes more than a sum."""
    if len(placed.pending) > 1:
        return None if any(placed.pending) else Alternative(placed)
    made = placed.with_sum(waits)
    return None if made is None else Alternative(placed, made, waits)


class _Whole:
    """An op that would run on all devices of an axis, and those around it that compute little or could carry its sum."""

    def __init__(self, node: Node, axis: Place, search: _Search) -> None:
        self.axis, self.search = axis, search
        self.found: Claims = {node.number: None}
        self.waiting = {node.number: node}

    def lead(self, among: Set[NodeId], most: int) -> None:
        """Leads on from waiting ops among these, and from those that they lead to: from so many, not counting sums."""
        ahead = [self.waiting.pop(number) for number in [*self.waiting] if number in among]
        for node in ahead:
            most -= node.number not in self.search.carried
            if most < 0:
                self.waiting[node.number] = node
                continue
            new = dict.fromkeys(number for number in self.beside(node) if number not in self.found)
            self.found |= new
            ahead += (self.search.program.nodes[number] for number in new)

    def beside(self, node: Node) -> Iterator[NodeId]:
        """The ops next to an op that would run on all devices with it."""
        search, axis = self.search, self.axis
        others, waits = [search.program.producer[value] for value in node.operands], axis not in search.placements.axes(node)
        for user, at in (use for value in node.results for use in search.program.uses[value]):
            others.append(user)
            # It lets a sum wait, and so could what reads it.
            if waits and search.ops.may_wait(user, frozenset({at})):
                yield user
        yield from (other for other in others if 0 <= other < search.program.end and search.may_be_whole(other, axis))


class _Around(Sweep):
    """An op that would run along an index, and those that follow it if nothing else were placed on the axis.

    Propagation through the ops that may run elsewhere, up to those that already follow the claim.
    """

    def __init__(self, table: Table, axis: Place, tactic: int, search: _Search, nodes: Iterable[Node]) -> None:
        super().__init__(table, axis, tactic)
        self.search, self.most = search, -1
        # So that what is found lies on both sides of the first op.
        self.most_at_once = 1
        self.found: Claims = {}
        self.waiting = dict[NodeId, Node]()
        for node in nodes:
            self.decided(node)

    def lead(self, among: Set[NodeId], most: int) -> None:
        """Leads on from waiting ops among these, and from those that they lead to: from so many, not counting sums."""
        self.most = most
        for node in [self.waiting.pop(number) for number in [*self.waiting] if number in among]:
            self.onward(node)
        self.run([])

    def visit(self, node: Node) -> None:
        if self.search.ops.may_move(node, self.axis):
            super().visit(node)

    def argument(self, value: ValueId) -> None:
        """Lets all ops that read an argument follow, if it lies where the claim wants it: arguments stay where they are."""
        if self.claims.values[value] is None and len(wants := self.wants(value)) == 1:
            (claim,) = wants
            if (claim.at, claim.factor) in self.search.placements.homes[value].factors:
                self.claims.values[value] = claim
                self.pass_on(value)

    def decided(self, node: Node) -> None:
        claim, own = self.claims.nodes[node.number], self.search.table.axes[self.axis].nodes[node.number]
        assert claim is not None
        leaves = own is not None and own.held and own[:2] != claim[:2]
        if not leaves and (claim.at, claim.factor) not in self.search.placements.nodes[node.number].placement:
            self.found[node.number] = claim
            self.onward(node)

    def onward(self, node: Node) -> None:
        """Leads on to the neighbours of an op, or lets it wait if enough ops do."""
        self.most -= node.number not in self.search.carried
        if self.most < 0:
            self.waiting[node.number] = node
        else:
            super().decided(node)
