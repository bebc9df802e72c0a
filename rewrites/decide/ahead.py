"""How far ahead of its use the gather of a parameter starts: by the time in which a device only waits, and by its memory.

Such a gather waits for the value that starts its use, and what follows waits for the gather. It may start with the use of an
earlier gather instead: then it runs while a device computes, which holds what it brings until then. One number says how many
bytes may be gathered ahead of their uses: the fewest that take the least time, of those for which a device has memory.

    gather, use; gather, use; gather, use   -->   gather; use, gather; use, gather; use
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, takewhile
from operator import attrgetter

from ...dialects.chips import CHIPS
from ..program.program import Node, NodeId
from .decide import Ahead, Decisions, Move, decide, first_use
from .in_memory import within_memory
from .live_ranges import bytes_of_ends, live_ranges, traits
from .placements import OpPlacement, Placements
from .price import START, Price, computed
from .table import Table

COUNTS = 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64
"""How many of the largest gathers may be ahead of their uses: what is tried."""
SHARE = 4
"""By default, what is gathered ahead takes no more than one part in so many of what a device stores in any case."""


@dataclass(slots=True)
class _Sent:
    """A move at the op that needs it first, and the seconds that a device has computed before that."""

    move: Move
    use: NodeId
    after: float
    seconds: float
    """How long it takes, in all trips of the loops around it."""


class _Clock:
    """What a device computes and what is sent, in order. All that is sent uses one link in turn."""

    def __init__(self, found: Decisions) -> None:
        placements, program = found.placements, found.placements.program
        after, self.sent = _computed(placements), list[_Sent]()
        readers = {move.before: move for move in reversed(found.moves) if move.before is not None and move.uses}
        for move in found.moves:
            if move.communicates:
                reader = move if move.uses else readers.get(move, move)
                use = first_use(reader)[0] if reader.uses else NodeId(program.producer[move.value] + 1)
                seconds = Price.of(program.mesh, [(move.path, 1)]).seconds + START * move.path.collectives
                seconds *= program.likely_trips(move.region)
                self.sent.append(_Sent(move, use, after[min(use, program.end)], seconds))
        self.sent.sort(key=attrgetter("use"))
        self.gathers = [each for each in self.sent if _may_start_ahead(each.move)]
        self.sizes = [placements.local_bytes(each.move.value, each.move.target) for each in self.gathers]
        uses = [each.use for each in self.gathers]
        self.earliest = [bisect_right(uses, program.producer[each.move.value]) for each in self.gathers]
        """The first gather with whose use each may start: what it sends is there."""

    def hosts(self, most: int) -> list[int]:
        """For each gather, the first with whose use it may start if no more than so many bytes are ahead of their uses."""
        found, host, total = list[int](), 0, [0, *accumulate(self.sizes)]
        for number, earliest in enumerate(self.earliest):
            while total[number + 1] - total[host + 1] > most:
                host += 1
            found.append(min(max(host, earliest), number))
        return found

    def waiting(self, most: int) -> list[float]:
        """The seconds in which a device only waits for what is sent, with so many bytes ahead of their uses."""
        starting = dict[int, list[int]]()
        for number, host in enumerate(self.hosts(most)):
            starting.setdefault(host, []).append(number)
        ends, number, waited, link, found = dict[int, float](), 0, 0.0, 0.0, list[float]()
        for each in self.sent:
            now = waited + each.after
            if _may_start_ahead(each.move):
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


def decide_all(table: Table, donated: Callable[[Placements], int] = lambda _: 0) -> Decisions:
    """Returns all decisions of a plan, within the memory that a device has.

    `donated` says how many bytes of results take the buffers of donated arguments.
    """
    return _started_ahead(within_memory(decide(table), donated), donated)


def _started_ahead(found: Decisions, donated: Callable[[Placements], int]) -> Decisions:
    """The decisions in which gathers start ahead of their uses where that saves time; none does with loops or device sets."""
    table = found.placements.table
    if table.has_loops or table.sets is not None or sum(map(_may_start_ahead, found.moves)) < 2:
        return found
    clock, room, most = _Clock(found), _room(found, donated), 0
    exposed = {count * max(clock.sizes): sum(clock.waiting(count * max(clock.sizes))) for count in COUNTS}
    for tried in takewhile(lambda tried: tried <= room, exposed):
        if Price(exposed[tried], 0, tried).pays(Price(exposed[most], 0, most)):
            most = tried
    clock.start(most)
    seconds = zip((each.move for each in clock.sent), clock.waiting(most), strict=True)
    found.ahead = Ahead(most, room, exposed, dict(seconds))
    return found


def _may_start_ahead(move: Move) -> bool:
    """Whether a move is a gather that waits for what starts its use, outside of loops and branches."""
    return move.waits and bool(move.uses) and not move.region


def _room(found: Decisions, donated: Callable[[Placements], int]) -> int:
    """The bytes that may be gathered ahead: of the memory that a mesh says, or a share of what a device stores in any case."""
    chip, (arguments, results) = found.placements.program.mesh.chip, bytes_of_ends(found.placements)
    stored = sum(arguments) + sum(results) + live_ranges(found, arguments).peak.bytes
    free = max(0, chip.memory - stored + donated(found.placements))
    return free if chip.memory != CHIPS[chip.name].memory else min(free, stored // SHARE)


def _computed(placements: Placements) -> list[float]:
    """For each op, and for the end of the program, the seconds that a device has computed before it, in all trips of loops."""
    spent, after, known, program = 0.0, list[float](), dict[int, float](), placements.program
    for node, placed in zip(program.nodes, placements.nodes, strict=True):
        after.append(spent)
        if (seconds := known.get(id(placed))) is None:
            seconds = known[id(placed)] = _seconds(placements, node, placed)
        spent += seconds * program.likely_trips(node.region) if node.region else seconds
    return [*after, spent]


def _seconds(placements: Placements, node: Node, placed: OpPlacement) -> float:
    """The time of an op: of its flops, or of reading its operands and writing its results, if they are not made in readers."""
    if node.is_border or traits(node.signature.definition).maps:
        return 0.0
    chip = placements.program.mesh.chip
    moved = sum(map(placements.local_bytes, node.operands, placed.wanted)) + sum(
        map(placements.local_bytes, node.results, placed.produced)
    )
    return max(computed(node, placed) / chip.flops_per_second, moved / chip.memory_bytes_per_second)
