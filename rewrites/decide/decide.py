"""Decisions: from a plan's table, which pending sums resolve where, and which redistributions happen.

All reports of a plan (`counts`, `collectives`, `bytes_per_device`) read these decisions, and materialising writes exactly them
into the IR. A parameter that a tactic only stores in parts, also one that was moved or cast, is redistributed again for each
use, which keeps ZeRO-3 small. Any other value is redistributed once, and its uses share the result.

    %w {data*128, 64}, used twice by ops that need it replicated   -->   two moves, each one all_gather
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place
from ..program.independent_parts import nodes_by_part, parts
from ..program.program import NO_NODE, NO_VALUE, Node, NodeId, ValueId
from ..redistribute.kinds.halo import sharers
from ..redistribute.kinds.merge import Merge
from ..redistribute.search import Path
from . import price
from .axis_splits import split_tables
from .choices import Choices, Use, by_way_of, is_stored, use_group
from .constants import compute_constants_whole
from .deferred_reductions import DeferredReduction, carried_sum, kept, makers
from .in_trips import Once, gathered_in_trips, is_in_each_trip, loops_of, scattered_in_trips
from .loop_hoisting import Accumulated, carried_sums, gather_before_loops
from .placements import Elsewhere, OpPlacement, Placements, Selected, Unreduced, boundary, read_table
from .price import Price, charged
from .regather import gather_at_source
from .relocate import Relocated, relocated
from .sort_strategy import sort_gathered
from .table import Table

PROPOSALS: Sequence[Callable[[Choices], None]] = (
    sort_gathered,
    gather_at_source,
    gather_before_loops,
    compute_constants_whole,
)
"""What places ops otherwise before it is decided where sums wait and which ops are relocated, in this order."""

FARTHEST = 64
"""How many ops upstream of a use are searched for a value that is stored in any case."""

SELECTED = 1 << 30
"""The operand position that stands for a use of what the op itself has selected of each block, or sorted: past all operands."""


@dataclass(slots=True, eq=False)
class Move:
    """One redistribution of a value, from one layout to another, for some of its uses."""

    value: ValueId
    source: Layout
    """With the sums that are pending in the value."""
    target: Layout
    path: Path
    before: Move | None
    """The move whose result this one starts from; None if it starts from the value itself."""
    shared: bool
    region: int
    trips: int
    uses: list[tuple[NodeId, int]] = field(default_factory=list[tuple[NodeId, int]])
    anchor: ValueId = NO_VALUE
    """The value that starts the use when it is available: the gather of a parameter waits for it."""
    during: Move | None = field(default=None, repr=False)
    """An earlier move, with whose use this one starts; None if it starts with its own."""
    trip_ahead: Move | None = field(default=None, repr=False)
    """A move of the same loop: in the trip before, this one starts with its use. None if it starts in the trip that uses it."""
    together: tuple[Move, ...] = ()
    """This move and others that share collectives with it, if there are any; the path of the first one counts them."""
    is_said: bool = False
    """Whether a text says the path, and it is not the cheapest."""

    @property
    def pending(self) -> Unreduced:
        """The sums that are pending before the move."""
        return self.source.pending

    @property
    def communicates(self) -> bool:
        """Whether any step of the path is a collective."""
        return self.path.communicates

    @property
    def waits(self) -> bool:
        """Whether it waits for what starts a use: its own, or that of `during`."""
        return self.anchor != NO_VALUE

    @property
    def host(self) -> Move | None:
        """The move with whose use it starts, of this trip or of the one before; None if it starts with its own."""
        return self.during or self.trip_ahead

    @property
    def start(self) -> ValueId:
        """The value for which it waits; none if it does not wait."""
        return (self.during or self).anchor


@dataclass(frozen=True, slots=True)
class Ahead:
    """The bytes that gathers bring ahead of their uses, at most, and those for which a device has memory.

    `exposed` has the seconds in a call in which a device only waits for what is sent, for some numbers of bytes ahead, and
    `seconds` those for each move, with `bytes`. Both are estimates for the chip of the mesh.
    """

    bytes: int
    room: int
    exposed: Mapping[int, float]
    seconds: Mapping[Move, float] = field(repr=False)


@dataclass(slots=True)
class Decisions:
    """The placements, the ops that pending sums move through, and all moves in the order of their first use."""

    placements: Placements
    carried: dict[NodeId, DeferredReduction]
    gathered: list[NodeId]
    """The ops that sort gathered operands and do not merge blocks, because their results are wanted whole."""
    moves: list[Move]
    at_use: dict[tuple[NodeId, int], Move]
    """(op, operand) -> the move through which the operand is read; operands without an entry are read directly."""
    homes: dict[ValueId, Move]
    """Values that are redistributed where they are computed, because a tactic placed them -> the move."""
    weighed: bool = False
    """Whether axes are split, or ops could run elsewhere than the table says: if that pays in the program as a whole."""
    unsplit: Price | None = None
    """What a call would cost if no axis were split into sub-axes; None if none is."""
    accumulated: list[Accumulated] = field(default_factory=list[Accumulated])
    """The sums that wait for the end of a loop, and those that would if a device had the memory."""
    for_memory: Sequence[Once] = ()
    """The values that are sent in each trip of loops because a device has no memory to hold them in all trips."""
    ahead: dict[int, Ahead] = field(default_factory=dict[int, Ahead])
    """How far gathers start ahead of their uses, in the program (0) and in loops; nothing where none could."""
    nearly: Elsewhere | None = None
    """The ops that could run elsewhere, which would save too little time; None if not all were tried."""

    def __repr__(self) -> str:
        return f"Decisions({len(self.moves):,} moves of the values of {len(self.placements.nodes):,} ops)"

    @property
    def price(self) -> Price:
        """What one call costs, with the trips that loops are taken to have."""
        return self.price_of(self.placements.program.nodes, self.placements.nodes, self.moves)

    def price_of(self, nodes: Sequence[Node], placed: Sequence[OpPlacement], moves: Iterable[Move]) -> Price:
        """What these ops, placed so, and these moves cost in one call."""
        placements, program = self.placements, self.placements.program
        return Price.of(
            program.mesh,
            ((move.path, program.likely_trips(move.region)) for move in moves),
            ((charged(placements, node, placed[node.number]), program.likely_trips(node.region)) for node in nodes),
            sum(placements.held(node, placed[node.number]) for node in nodes),
        )

    def is_like(self, other: Decisions) -> bool:
        """Whether the same ops run in the same way and let the same sums wait, so that values move alike."""
        ours, theirs = ((p.nodes, p.homes, p.sources, p.reduced_at_def, p.results) for p in (self.placements, other.placements))
        return ours == theirs and self.carried == other.carried

    def bytes_ahead(self, region: int) -> int:
        """The bytes that gathers bring ahead of their uses: in a loop and in those around it, or around all loops (0)."""
        around = {region, *self.placements.program.outward(region)}
        return sum(self.ahead[each].bytes for each in around if each in self.ahead)

    def orders(self) -> Mapping[tuple[Place, int], int]:
        """(loop, region) -> the order in which its trips run, 1 or -1, if values go on from trip to trip there.

        Forwards, if any goes on forwards; what goes on backwards is then put together from all trips, as what has no order.
        """
        found = dict[tuple[Place, int], int]()
        for move in self.moves if self.placements.table.has_loops else ():
            for step in move.path.steps:
                if step.order:
                    key = step.axes[0], move.region
                    found[key] = max(step.order, found.get(key, -1))
        return found

    def by_part(self) -> Mapping[ValueId, list[Move]]:
        """The moves in each part of the program that has any."""
        part, found = parts(self.placements.program), dict[ValueId, list[Move]]()
        for move in self.moves:
            found.setdefault(part[move.value], []).append(move)
        return found


def decide(table: Table) -> Decisions:
    """Returns all decisions of a plan. Axes are split, and ops run elsewhere than the table says, if that costs less."""
    found = whole = _decide_as_split(table)
    while (tables := [*_splits(found)]) and (before := found.price).may_fall:
        others = [*map(_decide_as_split, tables)]
        prices = [each.price for each in others]
        if not (cheaper := [(price, at) for at, price in enumerate(prices) if price.pays(before)]):
            break
        found = others[min(cheaper)[1]]
        found.unsplit, found.weighed = whole.price, True
    return found


def _splits(found: Decisions) -> Iterator[Table]:
    """Yields the table with an axis split, for the stops at which something is sent over the axis, or the op runs elsewhere."""
    steps = ((move, step) for move in found.moves for step in move.path.steps)
    reads = {(number, axis) for move, step in steps for axis in step.axes for number, _ in move.uses}
    reads |= {(number, axis) for number, instead in found.placements.elsewhere.items() for axis in instead}
    return split_tables(found.placements.table, reads)


def _decide_as_split(table: Table) -> Decisions:
    """Returns the decisions on the axes that the table has."""
    found = moved(_unmoved(table, {}))
    tried = _relocated(found, _may_pay(found), price.START)
    if elsewhere := tried.placements.elsewhere:
        # Sums wait where the search has left them, or anew where a cut over all of them lets them wait.
        left = Decisions(tried.placements, tried.carried, found.gathered, [], {}, {}, accumulated=found.accumulated)
        anew = _unmoved(table, elsewhere)
        ways = [*map(moved, [left] if left.is_like(anew) else [left, anew])]
        # All other ops cost the same.
        placed = zip(*(each.placements.nodes for each in (found, *ways)), strict=True)
        changed = [node for node, own in zip(table.program.nodes, placed, strict=True) if len({*own}) > 1]
        before, *prices = (each.price_of(changed, each.placements.nodes, each.moves) for each in (found, *ways))
        if (least := min(prices)).pays(before):
            found = ways[prices.index(least)]
    found.weighed, found.nearly = bool(elsewhere), tried.nearly
    return found


def _may_pay(found: Decisions) -> Callable[[ValueId], bool]:
    """Says of a part of the program whether anything else could pay there: whether the part takes more than a start."""
    placed, moves = found.placements.nodes, found.by_part()
    # Most parts of which anything is asked send so much that their ops need no price.
    nodes = cache(lambda: nodes_by_part(found.placements.program))

    @cache
    def may_pay(part: ValueId) -> bool:
        own = moves.get(part, ())
        shares = any(move.together for move in own)
        return shares or found.price_of((), (), own).may_fall or found.price_of(nodes().get(part, ()), placed, own).may_fall

    return may_pay


def _relocated(found: Decisions, is_tried: Callable[[ValueId], bool], least: float) -> Relocated:
    """The ops that run elsewhere than the table says, in parts of the program that are tried: `relocated`."""
    moving = [move.value for move in found.moves if move.communicates]
    return relocated(found.placements, found.carried, moving, is_tried, least)


def as_claimed(found: Decisions) -> Decisions:
    """The decisions if each op ran where claims have it."""
    return moved(_unmoved(found.placements.table, {})) if found.placements.elsewhere else found


def nearly_elsewhere(found: Decisions) -> Elsewhere:
    """The ops that could run elsewhere than the table says, which would save too little time to depart from it.

    Decisions leave out parts of a program that take less than a start, and ops that would save less: they are tried here, once
    they are asked for.
    """
    nearly = found.nearly
    if nearly is None:
        nearly = found.nearly = _relocated(as_claimed(found), lambda part: True, 0).nearly
        assert nearly is not None, "every part is tried"
    return nearly


def _unmoved(table: Table, instead: Elsewhere) -> Decisions:
    """Where ops run and sums wait, if some ops run elsewhere than the table says; no value has moved yet."""
    placements = read_table(table, instead)
    choices = Choices(placements, {})
    for propose in PROPOSALS:
        propose(choices)
    carried, accumulated = carried_sums(placements)
    for number, carry in carried.items():
        placements.carry(placements.program.nodes[number], carry.pend)
    return Decisions(placements, carried, choices.sorts_gathered, [], {}, {}, accumulated=accumulated)


def moved(found: Decisions) -> Decisions:
    """Completes decisions that have no moves yet: every value moves as its uses need it. Updates `found`."""
    placements = found.placements
    # Where results lie outside is decided with where their ops run.
    placements.results |= {value: boundary(placements, value) for value in placements.results}
    return _Mover(found).decisions()


def sent_in_trips(found: Decisions, values: Sequence[Once]) -> Decisions:
    """The same decisions, but these values too are sent in each trip of loops."""
    each_trip = found.placements.each_trip.union(each.value for each in values)
    placements = replace(found.placements, each_trip=each_trip)
    return moved(replace(found, placements=placements, moves=[], at_use={}, homes={}, for_memory=values))


def moved_so(
    placements: Placements, carried: dict[NodeId, DeferredReduction], moves: list[Move], homes: dict[ValueId, Move]
) -> Decisions:
    """The decisions with these moves, and with those by which ops exchange what they have selected or sorted."""
    mover = _Mover(Decisions(placements, carried, [], moves, {}, homes))
    mover.exchange()
    mover.order()
    return mover.result


def mismatches(
    placements: Placements, carried: Mapping[NodeId, DeferredReduction]
) -> dict[tuple[ValueId, int], list[tuple[NodeId, int, Layout]]]:
    """(value, region) -> the uses there, as (node, operand, wanted layout), that need another layout than the value's own.

    A loop's carry is read inside the loop and, as its result, after it; these two uses share no move.
    """
    found: dict[tuple[ValueId, int], list[tuple[NodeId, int, Layout]]] = {}
    program, homes, sources = placements.program, placements.homes, placements.sources
    whole: list[Layout | None] = [*homes]
    for value in sources:
        whole[value] = None
    for node, placed in zip(program.nodes, placements.nodes, strict=True):
        if not node.reads and tuple(map(whole.__getitem__, node.operands)) == placed.wanted:
            continue
        for position, (value, wanted) in enumerate(zip(node.operands, placed.wanted, strict=True)):
            if not node.reads and wanted is whole[value]:
                continue
            wanted = wanted.with_pending(kept(sources.get(value, ()), carried_sum(carried, node.number)))
            if wanted != placements.lies(node.number, position, value):
                key = value, program.use_region(node.number, position)
                found.setdefault(key, []).append((node.number, position, wanted))
    for position, value in enumerate(program.returned):
        wanted = boundary(placements, value)
        if value in sources or wanted != homes[value]:
            found.setdefault((value, 0), []).append((program.end, position, wanted))
    return found


def starter(placements: Placements, number: NodeId) -> ValueId:
    """The value at which a use starts, from which an operand of the op is computed; -1 if all operands are arguments.

    The gather of a parameter waits for it. It is the nearest value upstream that is stored in any case, such as the result of a
    product. A value that the use could compute itself would have to be stored only to start the use.

        %h = dot ...; %n = mul %h, %c; dot %n, (all_gather %w)   -->   the gather of %w waits for %h
    """
    program = placements.program
    if number == program.end or program.nodes[number].is_border:
        return NO_VALUE
    first = next((value for value in program.nodes[number].operands if _is_computed(placements, value)), NO_VALUE)
    ahead = [first] if first >= 0 else []
    for value in ahead:
        node = program.made_by(value)
        if node.is_border or not node.signature.definition.maps or len(ahead) > FARTHEST:
            return value
        ahead += [each for each in node.operands if _is_computed(placements, each) and each not in ahead]
    return first


def _is_computed(placements: Placements, value: ValueId) -> bool:
    """Whether an op computes the value completely: it is neither an argument, as it is or moved, nor pending."""
    program = placements.program
    is_argument = program.producer[value] < 0 or program.parameter[value]
    return not is_argument and value not in placements.sources


class _Mover:
    """Collects the uses whose wanted layout differs from the value's own layout, and moves each value for them."""

    def __init__(self, result: Decisions) -> None:
        self.result, self.placements, self.carried = result, result.placements, result.carried
        self.program = result.placements.program

    def decisions(self) -> Decisions:
        for each in self.placements.unsettled():
            self.settle(*each)
        self.exchange()
        for (value, _), uses in sorted(mismatches(self.placements, self.carried).items()):
            self.move_value(value, uses)
        self.order()
        self.share(lambda move: move.value)
        self.share(lambda move: first_use(move)[0])
        return self.result

    def exchange(self) -> None:
        """Makes the moves by which ops exchange what they have selected or sorted of each block."""
        for node, placed in zip(self.program.nodes, self.placements.nodes, strict=True):
            if placed.selected is not None:
                self.gather(node, placed.selected)
            if placed.merged is not None:
                self.merge(node, placed.produced[0], placed.merged)

    def order(self) -> None:
        """Finds the move of each use, and orders the moves by their first uses."""
        for move in self.result.moves:
            for use in move.uses:
                self.result.at_use[use] = move
        self.result.moves.sort(key=first_use)

    def share(self, key: Callable[[Move], int]) -> None:
        """Lets moves with equal keys share collectives where that is cheaper."""
        moves = [
            each for each in self.result.moves if each.uses and each.before is None and each.anchor < 0 and not each.together
        ]
        keyed = [(move.path, (key(move), move.region, self.program.types[move.value].dtype)) for move in moves]
        for numbers, ways in sharers(keyed):
            group = tuple(moves[number] for number in numbers)
            for move, way in zip(group, ways, strict=True):
                move.path, move.together = way, group

    def settle(self, value: ValueId, source: Layout) -> None:
        move = self.make(value, source, self.placements.homes[value], self.program.region[value])
        if self.is_in_each_trip(value):
            self.send_in_trips([move])
        self.result.homes[value] = move
        self.result.moves.append(move)

    def gather(self, node: Node, selected: Selected) -> None:
        """Gathers the elements that an op has selected of each block, and their positions if these are read."""
        for value in (node.operands[0], *filter(self.program.is_read, node.results[-1:])):
            move = self.make(value, selected.apart, selected.gathered, node.region)
            move.uses.append((node.number, SELECTED))
            self.result.moves.append(move)

    def merge(self, node: Node, layout: Layout, step: Merge) -> None:
        """Merges the blocks that an op has sorted: one step for all of its results, which keep their layout."""
        trips, way = self.program.trips(node.region), Path.of(step)
        uses = [(node.number, SELECTED)]
        self.result.moves.append(Move(node.results[0], layout, layout, way, None, True, node.region, trips, uses))

    def move_value(self, value: ValueId, uses: list[tuple[NodeId, int, Layout]]) -> None:
        """Moves a value for its uses: a parameter once for each op, or loop, that uses it, any other value once for all.

        Of several gathers of a parameter, each waits for what starts its use.
        """
        apart = self.program.parameter[value] and is_stored(self.placements, value)
        wants = dict[int, dict[Layout, list[Use]]]()
        for number, position, wanted in uses:
            group = use_group(self.placements, value, (number, position), apart)
            wants.setdefault(group, {}).setdefault(wanted, []).append((number, position))
        groups = [self.moves_for(value, each, not apart) for each in wants.values()]
        if self.is_in_each_trip(value):
            for group in groups:
                self.send_in_trips(group)
        gathers = [group for group in groups if any(move.communicates for move in group)]
        for first, *rest in gathers if apart and len(gathers) > 1 else ():
            for move in (first, *(each for each in rest if each.before is None)):
                if move.communicates:
                    move.anchor = starter(self.placements, (move.uses or rest[0].uses)[0][0])
        self.result.moves += (move for group in groups for move in group)

    def is_in_each_trip(self, value: ValueId) -> bool:
        """Whether a value, or one of the sums of which it is made, is sent in each trip of loops."""
        if not self.placements.each_trip:
            return False
        terms = makers(self.placements, self.carried, value) if value in self.placements.sources else ()
        made = (each for term in terms for each in term.results)
        return any(is_in_each_trip(self.placements, each) for each in (value, *made))

    def send_in_trips(self, group: Sequence[Move]) -> None:
        """Lets a value move in each trip of the loops in which all uses of a group read it, or to whose sums it belongs."""
        loops = loops_of(self.placements, group[0].value, [use for move in group for use in move.uses])
        for move in group:
            way = scattered_in_trips(move.source, move.target, self.placements.width(move.value))
            if way is None and loops and move.communicates:
                way = gathered_in_trips(move.path, loops, begins=move.before is None)
            if way is not None:
                move.path, move.is_said = way, True

    def moves_for(self, value: ValueId, wants: Mapping[Layout, list[Use]], shared: bool) -> list[Move]:
        """The moves to the layouts that a group of uses wants: directly from the value, or by way of one layout."""
        use = next(iter(wants.values()))[0]
        source, region = self.placements.lies(*use, value), self.program.use_region(*use)
        first, moves = None, dict[Layout, Move]()
        if (through := by_way_of(self.placements, value, source, [*wants])) is not None:
            moves[through] = first = self.make(value, source, through, region, shared)
            source = through
        for target, own in wants.items():
            if target not in moves:
                moves[target] = self.make(value, source, target, region, shared, first)
            moves[target].uses += own
        return [*moves.values()]

    def make(
        self, value: ValueId, source: Layout, target: Layout, region: int, shared: bool = True, before: Move | None = None
    ) -> Move:
        way = price.way_of(self.placements, value, source, target)
        made = Move(value, source, target, way, before, shared, region, self.program.trips(region))
        made.is_said = bool(self.program.mesh.slow) and way != self.placements.way(value, source, target)
        return made


def first_use(move: Move) -> tuple[NodeId, int]:
    return min(move.uses, default=(NO_NODE, move.value))
