"""The placements that a plan has, and what it would cost if some ops were placed otherwise.

A value moves from the layout in which its op makes it to each layout in which an op reads it, in each trip of the loops around
the reader; and each op computes on what it reads. Only the values that the ops read or make, and the ops, are counted.

    %w {data*8, 64}, read whole by one op of a loop of 32 trips   -->   the bytes of 32 all_gathers, and 32 collectives
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import hull, joined
from ..program.program import NO_VALUE, Node, NodeId, ValueId
from ..redistribute.kinds.halo import sharers
from ..redistribute.search import Path, path
from .deferred_reductions import DeferredReduction, carried_sum, is_linear, is_sum, kept
from .in_trips import is_in_each_trip, loops_of
from .min_cut import Edge
from .placements import OpPlacement, Placements, Unreduced, overlaps
from .price import Price, charged, seconds, way_of
from .table import Claim

Use = tuple[NodeId, int]


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """Another placement of an op. Its result is then the sum `pend`, of which its operands are the sum `carries`.

    Compared by identity, so that what follows from one can be cached under it.
    """

    placed: OpPlacement
    pend: Unreduced = ()
    carries: Unreduced = ()

    @staticmethod
    def of(placed: OpPlacement) -> Alternative:
        """The placement, with the sum that the op itself leaves in its result."""
        return Alternative(placed, placed.pending[0] if len(placed.pending) == 1 else ())


Own = tuple[tuple[tuple[Path, int], ...], tuple[int, int]]
"""What an op itself receives, and its flops, each with the trips."""

Apart = tuple[tuple[int, int], list[tuple[int, int]]]
"""What the moves of a value cost in a cut wherever it is wanted, as its op is placed now and otherwise. Then of each move: what
it costs at least, and what it costs more if the op makes the opposite choice."""

Ways = dict[NodeId, Alternative]
"""Ops that may be placed otherwise, and how."""


class Want(NamedTuple):
    """A layout that uses of a value want, and how often it is read. Uses of one group share a move to the same layout.

    With None for the layout, the program returns the value: the layout at the boundary follows from the value's own.
    """

    layout: Layout | None
    group: int
    trips: int


class Moving(NamedTuple):
    """How a value gets from the layout in which it is made to one in which uses read it, or in which a tactic placed it."""

    value: ValueId
    source: Layout
    target: Layout
    trips: int
    uses: Sequence[Use]
    """The uses for which it moves; none if it moves where it is made."""
    group: int = 0
    """The group of the uses: they may share a part of the way."""


class Choices:
    """The present placements, and what follows from them: cached until something changes next to it."""

    def __init__(self, placements: Placements, carried: dict[NodeId, DeferredReduction]) -> None:
        self.placements, self.program, self.carried = placements, placements.program, carried
        self.known: dict[ValueId, dict[Use, Want]] = {}
        self.counted: dict[ValueId, Counter[Want]] = {}
        self.edges: dict[ValueId, dict[object, tuple[list[Edge], bool]]] = {}
        """What values add to a minimum cut, for the alternatives of the ops around them."""
        self.alone: dict[Alternative, int] = {}
        """What ops themselves add to it: what each saves if it is placed otherwise."""
        self.served: dict[ValueId, dict[NodeId, int]] = {}
        """What the moves of a value cost now in it, for each op that reads the value, and all together."""
        self.present: dict[ValueId, list[Moving]] = {}
        """How values move now."""
        self.owned: dict[object, Own] = {}
        """What ops receive and compute themselves; this holds when ops move, too."""
        self.costs: dict[object, int] = {}
        """What it costs in a cut to move between two layouts, or to run an op; this holds when ops move, too."""
        self.priced: dict[object, Apart] = {}
        """The same for all moves of a value."""
        self.sorts_gathered: list[NodeId] = []
        """The ops that sort gathered operands and do not merge blocks, because their results are wanted whole."""

    def put(self, after: Ways) -> Set[NodeId]:
        """Places ops otherwise, and forgets what followed from it.

        Returns these ops, and those that make or read a value that changes its layout, or in which they want another one.
        """
        changed, program = [*self.changed(after)], self.program
        for value in changed:
            for cache in (self.known, self.counted, self.edges, self.served, self.present):
                cache.pop(value, None)
            # A parameter is stored in parts because of what reads its copies.
            if program.parameter[value] and (maker := program.maker(value)) is not None:
                changed += maker.operands
        for number, way in after.items():
            node = program.nodes[number]
            self.placements.put_otherwise(node, way.placed)
            self.carried.pop(number, None)
            if way.carries:
                self.carried[number] = DeferredReduction(way.carries)
            for value in node.results:
                self.placements.sources.pop(value, None)
                self.placements.reduced_at_def.pop(value, None)
            if way.carries or (way.pend and self.placements.pinned.keys().isdisjoint(node.results)):
                self.placements.set_sum(node, way.pend)
        users = (number for value in changed for number, _ in program.uses[value])
        return {*after, *(program.producer[value] for value in changed), *users}

    def changed(self, after: Ways) -> Iterator[ValueId]:
        """What ops make, and what they want in another layout or carry otherwise, if these ops are placed otherwise."""
        for number, way in after.items():
            node, wanted = self.program.nodes[number], self.placements.nodes[number].wanted
            carries = carried_sum(self.carried, number)
            yield from node.results
            for value, now, then in zip(node.operands, wanted, way.placed.wanted, strict=True):
                if now != then or way.carries != carries:
                    yield value

    def wants(self, value: ValueId) -> dict[Use, Want]:
        """Maps each use of a value to the layout that it wants."""
        if (found := self.known.get(value)) is None:
            apart = self.program.parameter[value] and is_stored(self.placements, value)
            found = {use: self.want(value, use, apart) for use in self.placements.uses(value)}
            self.known[value], self.counted[value] = found, Counter(found.values())
        return found

    def want(self, value: ValueId, use: Use, apart: bool) -> Want:
        if use[0] == len(self.placements.nodes):
            return Want(None, -1, 1)
        layout = self.placements.wanted(*use)
        if pend := self.placements.sources.get(value):
            layout = layout.with_pending(kept(pend, carried_sum(self.carried, use[0])))
        trips = self.program.likely_trips(self.program.use_region(*use))
        return Want(layout, use_group(self.placements, value, use, apart), trips)

    def price(self, among: Iterable[NodeId], after: Ways, below: Price | None = None) -> Price | None:
        """The price of these ops and of all that they read or make, if some of them are placed otherwise.

        None if it cannot be below another price, which is soon seen: few paths are searched then.
        """
        nodes = [self.program.nodes[number] for number in among]
        values = dict.fromkeys(value for node in nodes for value in (*node.operands, *node.results))
        moves = [self.routed(self.moves(value, after)) for value in values]
        placed = [self.placed(node, after.get(node.number)) for node in nodes]
        own = [*map(self.own, nodes, placed)]
        if below is not None and self.least(moves, own) >= below.seconds:
            return None
        ways = [way for each in filter(None, moves) for way in self.paths(each)]
        ways += [way for each, _ in own for way in each]
        return Price.of(self.program.mesh, ways, [each for _, each in own], sum(map(self.placements.held, nodes, placed)))

    def least(self, moves: Iterable[Sequence[Moving]], own: Sequence[Own]) -> float:
        """The seconds that the moves of values, and what ops themselves receive and compute, take at least."""
        received = sum(way.bytes * trips for each, _ in own for way, trips in each)
        for each in filter(None, moves):
            missed = [self.placements.misses(move.value, move.source, move.target) * move.trips for move in each]
            # Different devices may receive them.
            received += max(missed) if any(overlaps(move.source, move.target) for move in each[1:]) else sum(missed)
        return seconds(self.program.mesh, received, 0, sum(flops * trips for _, (flops, trips) in own))

    def paths(self, moves: Sequence[Moving]) -> list[tuple[Path, int]]:
        """The paths by which a value moves, with their trips. Those of a group share collectives where they can."""
        found = [(way_of(self.placements, move.value, move.source, move.target), move.trips) for move in moves]
        keyed = [(way, (move.group, move.trips)) for (way, _), move in zip(found, moves, strict=True)]
        for group, ways in sharers(keyed) if len(found) > 1 else ():
            for number, way in zip(group, ways, strict=True):
                found[number] = way, found[number][1]
        return found

    def placed(self, node: Node, way: Alternative | None) -> OpPlacement:
        """How the op is placed: otherwise, or with None as it is."""
        return self.placements.nodes[node.number] if way is None else way.placed

    def moves(self, value: ValueId, after: Ways) -> Iterable[Moving]:
        """How a value moves if these ops are placed otherwise: to where a tactic placed it, and for the ops that read it."""
        if after:
            return self.moves_if(value, after)
        if (found := self.present.get(value)) is None:
            found = self.present[value] = [*self.moves_if(value, {})]
        return found

    def moves_if(self, value: ValueId, after: Ways) -> Iterator[Moving]:
        maker = after.get(self.program.producer[value])
        yield from self.settled(value, maker)
        made = self.placements.pinned.get(value) or self.made(value, maker)
        if not (made.dims or made.pending):
            # Every device has a scalar, whoever reads it. Some are read by thousands of ops.
            return
        wants, pend = dict[Want, list[Use]](), self.pending(value, maker)
        for use, want in self.wants(value).items():
            reader = after.get(use[0])
            wants.setdefault(want if reader is None else self.wanted(want, use, reader, pend), []).append(use)
        for want, uses in wants.items():
            yield Moving(value, made, self.target(value, made, want), want.trips, uses, want.group)

    def routed(self, moves: Iterable[Moving]) -> list[Moving]:
        """The moves of a value that change its layout. Those of a group go by way of one layout if that is cheaper."""
        found = [move for move in moves if move.source != move.target]
        if len(found) < 2:
            return found
        groups, routed = dict[int, list[Moving]](), list[Moving]()
        for move in found:
            if move.uses:
                groups.setdefault(move.group, []).append(move)
        for group in groups.values():
            first = group[0]
            targets = list(dict.fromkeys(move.target for move in group))
            if (through := by_way_of(self.placements, first.value, first.source, targets)) is not None:
                routed += [first._replace(target=through), *(first._replace(source=through, target=each) for each in targets)]
                found = [move for move in found if move not in group]
        return found + routed

    def target(self, value: ValueId, made: Layout, want: Want) -> Layout:
        """The layout in which a use wants a value that is made in a layout."""
        return self.placements.outside(value, made) if want.layout is None else want.layout

    def settled(self, value: ValueId, maker: Alternative | None) -> Iterator[Moving]:
        """How a value moves where it is made: to where a tactic placed it, or to resolve what no op can read, as a scan."""
        placements = self.placements
        left = placements.left(value) if maker is None else self.made(value, maker) if value in placements.pinned else None
        if left is not None:
            yield Moving(value, left, placements.homes[value], placements.trips(value), ())

    def made(self, value: ValueId, maker: Alternative | None) -> Layout:
        """The layout in which an op makes a value, with the sum that it is; None: the op as it is placed."""
        if maker is None:
            return self.placements.with_sums(value)
        at = self.program.made_by(value).results.index(value)
        return maker.placed.produced[at].with_pending(maker.pend)

    def pending(self, value: ValueId, maker: Alternative | None) -> Unreduced:
        """The sum that a value is if this makes it; None: the op as it is placed. What a tactic placed is no sum."""
        now = self.placements.sources.get(value, ())
        return now if maker is None or value in self.placements.pinned else maker.pend

    def wanted(self, want: Want, use: Use, reader: Alternative, pend: Unreduced) -> Want:
        """The layout that a use wants of a value that is this sum, if the op that reads it is placed otherwise."""
        layout = reader.placed.wanted[use[1]].with_pending(kept(pend, reader.carries))
        return Want(layout, want.group, want.trips)

    def unsound(self, after: Ways) -> list[NodeId]:
        """The ops that would carry a sum that they do not read, or are not linear in, if these are placed otherwise."""
        program, found = self.program, list[NodeId]()
        read = {user for number in after for value in program.nodes[number].results for user, _ in program.uses[value]}
        for number in sorted({*after, *read}):
            node, way, carry = program.nodes[number], after.get(number), self.carried.get(number)
            carries = way.carries if way is not None else () if carry is None else carry.pend
            if not carries:
                continue
            sums = {at: self.pending(value, after.get(program.producer[value])) for at, value in enumerate(node.operands)}
            is_same = way is None and all(pend == self.pending(node.operands[at], None) for at, pend in sums.items())
            parts = {at: pend for at, pend in sums.items() if pend}
            is_read = bool(parts) and all({*carries} <= {*pend} for pend in parts.values())
            is_one = is_sum(carries) and (way is not None or (carry is not None and not carry.once and not node.is_border))
            if not is_same and not (is_read and is_one and is_linear(program, node, frozenset(parts))):
                found.append(number)
        return found

    def own(self, node: Node, placed: OpPlacement) -> Own:
        """What an op itself receives, to merge the blocks that it sorts or to compare what it selects; and its flops."""
        trips, exchanges = self.program.likely_trips(node.region), placed.merged is not None or placed.selected is not None
        # Layers are alike: what is said of an op by its placement holds for all with the same one.
        reached = tuple([self.placements.reaches(node.number, factor.axis) for _, factor in placed.placement])
        if (found := self.owned.get(key := (placed, trips, reached, exchanges and node.number))) is None:
            ways = list[Path]()
            if (step := placed.merged) is not None:
                ways.append(Path.of(step))
            if (lists := placed.selected) is not None:
                read = (node.operands[0], *filter(self.program.is_read, node.results[-1:]))
                ways += [path(lists.apart, lists.gathered, width) for width in map(self.placements.width, read)]
            found = self.owned[key] = tuple((way, trips) for way in ways), (charged(self.placements, node, placed), trips)
        return found


def use_group(placements: Placements, value: ValueId, use: Use, apart: bool) -> int:
    """The group of a use, in which all uses that want one layout share a move: those in one region, or of one op.

    `apart`: each op has its own move, as for a parameter that is only stored in parts. But inside a loop, where the parameter
    belongs to one layer, all ops of a trip share one: recomputed ops and the gradient's too. So do all trips of a loop in which
    the parameter is the same, for which it is gathered once.
    """
    program = placements.program
    region = program.use_region(*use)
    if not apart or (region and region == program.region[value]):
        return -region - 1
    return use[0] if is_in_each_trip(placements, value) or not loops_of(placements, value, [use]) else -region - 1


def by_way_of(placements: Placements, value: ValueId, source: Layout, targets: Sequence[Layout]) -> Layout | None:
    """The layout by way of which a value moves to several ones, if that is cheaper than to move to each of them directly.

    Where different sums stay pending, there is no such layout.

    %x {a*512, 64} read as [1024, 64] and as [1024, a*32]   -->   one all_gather, and a slice of what it gives
    """
    if len(targets) < 2 or len(pending := {target.pending for target in targets}) > 1:
        return None
    (pend,) = pending
    common, way, mesh = common_layout(targets).with_pending(pend), placements.way, placements.program.mesh
    rest = [way(value, common, target) for target in targets]
    through, apart = ([*rest, way(value, source, common)], [way(value, source, target) for target in targets])
    cheaper = Price.of(mesh, ((each, 1) for each in through)) < Price.of(mesh, ((each, 1) for each in apart))
    return common if cheaper else None


def common_layout(layouts: Sequence[Layout]) -> Layout:
    """The layout with the factors that all of some layouts have, and with windows that contain all of their windows."""
    factors, shape = [layout.factors for layout in layouts], layouts[0].global_shape
    shared = [each for each in factors[0] if all(each in f for f in factors)]
    for dim, extent in enumerate(shape):
        if any(layout.windows(dim) is not None for layout in layouts):
            ones = [joined(extent, layout.at(dim)) for layout in layouts]
            one = None if None in ones else hull(extent, [each for each in ones if each is not None])
            shared = [each for each in shared if each[0] != dim]
            shared += [] if one is None else [(dim, part) for part in one.parts]
    return Layout.of(shape, shared)


def sent_over(source: Layout, target: Layout) -> set[Place]:
    """The axes on which a move changes what lies where, or resolves a sum."""
    resolved = {pend.axis for pend in source.pending} - {pend.axis for pend in target.pending}
    return {factor.axis for _, factor in {*source.factors} ^ {*target.factors}} | resolved


def is_stored(placements: Placements, value: ValueId) -> bool:
    """Whether an argument is only stored on an axis, because an op that reads it is placed there otherwise or not at all."""
    table, end = placements.table, placements.program.end
    _, reads = reads_of(placements, value)
    for axis in placements.homes[value].axes:
        own = table.claim(value, axis)
        readers = [use[0] for use, _ in reads if use[0] < end and axis not in placements.wanted(*use).axes]
        if own is not None and any(_is_taken(placements, number, axis, own) for number in readers):
            return True
    return False


def _is_taken(placements: Placements, number: NodeId, axis: Place, own: Claim) -> bool:
    """Whether an op does not follow a value's claim: an earlier tactic placed it, or propagation did not get there."""
    table, node = placements.table, placements.program.nodes[number]
    claim = table.axes[axis].nodes[number]
    if claim is None:
        stops = ((number, position, axis) in table.blocked for position in range(len(node.operands)))
        return (number, NO_VALUE, axis) not in table.conflicts and not any(stops)
    return claim.tactic < own.tactic


def reads_of(placements: Placements, value: ValueId) -> tuple[list[Node], list[tuple[Use, ValueId]]]:
    """The ops that only move or cast a value, or let it enter a loop, and the other uses with the value that each reads."""
    program, moved, reads = placements.program, list[Node](), list[tuple[Use, ValueId]]()
    for each in program.downstream([value], attrgetter("passes_on")):
        for use in placements.uses(each):
            if use[0] < program.end and (node := program.nodes[use[0]]).passes_on:
                moved.append(node)
            else:
                reads.append((use, each))
    return moved, reads
