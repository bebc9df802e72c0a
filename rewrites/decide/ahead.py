"""How far ahead of its use the gather of a parameter starts: by the time in which a device only waits, and by its memory.

Such a gather waits for the value that starts its use, and what follows waits for the gather. It may start with the use of an
earlier gather instead: then it runs while a device computes, which holds what it brings until then. One number says how many
bytes may be gathered ahead of their uses: the fewest that take the least time, of those for which a device has memory.

    use 1; use 2; use 3, each after its gather   -->   use 1 and the gather for use 2; use 2 and that for use 3; use 3
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, takewhile
from operator import attrgetter

from ...dialects.chips import CHIPS
from ..program.program import Node, NodeId
from .decide import Ahead, Decisions, Move, first_use
from .live_ranges import bytes_of_ends, live_ranges, traits
from .placements import OpPlacement, Placements
from .price import START, Price, computed

LENGTHS = 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64
"""How many of the largest gathers may be ahead of their uses: what is tried."""
SHARE = 4
"""By default, what is gathered ahead takes no more than one part in so many of what a device stores in any case."""


@dataclass(slots=True)
class _Sent:
    """A move at the op that needs it first, and the seconds that a device has computed in its region before that."""

    move: Move
    use: NodeId
    after: float
    seconds: float

    @property
    def is_gather(self) -> bool:
        """Whether it waits for what starts its use."""
        return self.move.waits and bool(self.move.uses)


@dataclass
class _Region:
    """What is sent in a region, in the order of first uses."""

    placements: Placements
    trips: int
    sent: list[_Sent]

    @cached_property
    def gathers(self) -> list[_Sent]:
        return [each for each in self.sent if each.is_gather]

    @cached_property
    def sizes(self) -> list[int]:
        """The bytes that each gather brings."""
        return [self.placements.local_bytes(each.move.value, each.move.target) for each in self.gathers]

    @cached_property
    def earliest(self) -> list[int]:
        """The first gather with whose use each may start: what it sends is there."""
        producer, uses = self.placements.program.producer, [each.use for each in self.gathers]
        return [bisect_right(uses, producer[each.move.value]) for each in self.gathers]

    def hosts(self, most: int) -> list[int]:
        """For each gather, the first with whose use it may start if no more than so many bytes are ahead of their uses."""
        found, host, total = list[int](), 0, [0, *accumulate(self.sizes)]
        for number, earliest in enumerate(self.earliest):
            while total[number + 1] - total[host + 1] > most:
                host += 1
            found.append(min(max(host, earliest), number))
        return found

    def waits(self, most: int) -> list[float]:
        """The seconds in which a device only waits for each move, if it computes in order and all use one link in turn."""
        starting = dict[int, list[int]]()
        for number, host in enumerate(self.hosts(most)):
            starting.setdefault(host, []).append(number)
        ends, number, waited, link, found = dict[int, float](), 0, 0.0, 0.0, list[float]()
        for each in self.sent:
            now = waited + each.after
            if each.is_gather:
                for started in starting.get(number, ()):
                    ends[started] = link = max(now, link) + self.gathers[started].seconds
                end, number = ends[number], number + 1
            else:
                end = link = max(now, link) + each.seconds
            found.append(max(0.0, end - now))
            waited += found[-1]
        return found

    def start(self, most: int) -> None:
        """Lets gathers start so far ahead."""
        for number, host in enumerate(self.hosts(most)):
            self.gathers[number].move.during = self.gathers[host].move if host < number else None


def started_ahead(found: Decisions, donated: Callable[[Placements], int] = lambda _: 0) -> Decisions:
    """The decisions in which gathers start ahead of their uses where that saves time. Updates `found`.

    `donated` says how many bytes of results take the buffers of donated arguments.
    """
    if not _may_start_ahead(found):
        return found
    regions, most = _regions(found), 0
    room, largest = _room(found, donated), max(max(each.sizes, default=0) for each in regions)
    exposed = {length * largest: sum(each.trips * sum(each.waits(length * largest)) for each in regions) for length in LENGTHS}
    for tried in takewhile(lambda tried: tried <= room, exposed):
        if Price(exposed[tried], 0, tried).pays(Price(exposed[most], 0, most)):
            most = tried
    waits = dict[Move, float]()
    for each in regions:
        each.start(most)
        waits |= zip((sent.move for sent in each.sent), each.waits(most), strict=True)
    found.ahead = Ahead(most, room, exposed, waits)
    return found


def _may_start_ahead(found: Decisions) -> bool:
    """Whether several gathers wait for what starts their uses. Of plans with loops or several device sets, none does."""
    table = found.placements.table
    return not table.has_loops and table.sets is None and sum(move.waits for move in found.moves) > 1


def _room(found: Decisions, donated: Callable[[Placements], int]) -> int:
    """The bytes that may be gathered ahead: of the memory that a mesh says, or a share of what a device stores in any case."""
    chip, (arguments, results) = found.placements.program.mesh.chip, bytes_of_ends(found.placements)
    stored = sum(arguments) + sum(results) + live_ranges(found, arguments).peak.bytes
    free = max(0, chip.memory - stored + donated(found.placements))
    return free if chip.memory != CHIPS[chip.name].memory else min(free, stored // SHARE)


def _regions(found: Decisions) -> list[_Region]:
    """What is sent in each region with gathers that wait, in the order of first uses."""
    program, placements, after = found.placements.program, found.placements, _computed(found.placements)
    later = {move.before: move for move in found.moves if move.before is not None and move.uses}
    sent = {move.region: list[_Sent]() for move in found.moves if move.waits}
    for move in found.moves:
        if move.region in sent and move.communicates:
            reader = move if move.uses else later.get(move, move)
            use = first_use(reader)[0] if reader.uses else NodeId(program.producer[move.value] + 1)
            seconds = Price.of(program.mesh, [(move.path, 1)]).seconds + START * move.path.collectives
            sent[move.region].append(_Sent(move, use, after[min(use, program.end)], seconds))
    return [
        _Region(placements, program.likely_trips(region), sorted(every, key=attrgetter("use")))
        for region, every in sent.items()
    ]


def _computed(placements: Placements) -> list[float]:
    """For each op, and for the end of the program, the seconds that a device has computed in its region before it."""
    spent, after, known = dict[int, float](), list[float](), dict[int, float]()
    for node, placed in zip(placements.program.nodes, placements.nodes, strict=True):
        before = spent.get(node.region, 0.0)
        after.append(before)
        if (seconds := known.get(id(placed))) is None:
            seconds = known[id(placed)] = _seconds(placements, node, placed)
        spent[node.region] = before + seconds
    return [*after, spent.get(0, 0.0)]


def _seconds(placements: Placements, node: Node, placed: OpPlacement) -> float:
    """The time of an op: of its flops, or of reading its operands and writing its results, if they are not made in readers."""
    if node.is_border or traits(node.signature.definition).maps:
        return 0.0
    chip = placements.program.mesh.chip
    moved = sum(map(placements.local_bytes, node.operands, placed.wanted)) + sum(
        map(placements.local_bytes, node.results, placed.produced)
    )
    return max(computed(node, placed) / chip.flops_per_second, moved / chip.memory_bytes_per_second)
