"""How far ahead of its use the gather of a parameter starts: by the time in which a device only waits, and by its memory.

A gather may run while a device computes, which holds what it brings until its use. Of several gathers of a parameter, each
waits for the value that starts its use, and what follows waits for the gather: it may start with the use of an earlier one
instead. In the body of a scan, the gathers that a trip needs first may start in the trip before: a skew of one in time.

    gather, use; gather, use; gather, use   -->   gather; use, gather; use, gather; use
    scan: gather w[i], use                  -->   gather w[0]; scan: use, gather w[i + 1]; use

In each of these places, one number says how many bytes may be gathered ahead of their uses: the fewest that take almost the
least time, of those for which a device has memory. The smallest parameters do not wait: a device has memory to hold them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from operator import attrgetter
from typing import Protocol

from ...dialects.chips import CHIPS
from ..program.program import NO_VALUE, Control, Node, NodeId, Program, ValueId
from .decide import Ahead, Decisions, Move, decide, first_use
from .in_memory import within_memory
from .live_ranges import bytes_of_ends, live_ranges, traits
from .placements import OpPlacement, Placements
from .price import Price, computed
from .table import Table

COUNTS = 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64
"""How many of the largest gathers may be ahead of their uses: what is tried outside of loops."""
SHARE = 4
"""By default, what is gathered ahead takes no more than one part in so many of what a device stores in any case."""
SLIGHT = 64
"""More is gathered ahead only if a device then waits less by more than one part in so many: the clock is an estimate."""
HELD = 1024
"""The smallest parameters wait for nothing, as long as they take no more than one part in so many of what a device stores."""


@dataclass(slots=True)
class _Sent:
    """A move at the op that needs it first, and the seconds that a device has computed before that."""

    move: Move
    use: NodeId
    after: float
    seconds: float
    """How long it takes, in all trips of the loops around it."""


class Link:
    """The one link that all that is sent uses in turn.

    Gathers that have started wait in a queue until it is free. What a device waits for is sent before those in the queue.
    """

    def __init__(self) -> None:
        self.free = 0.0
        self.queue = deque[tuple[Move, float, float]]()
        self.ends = dict[Move, float]()

    def start(self, move: Move, now: float, seconds: float) -> None:
        """Puts a gather into the queue."""
        self.queue.append((move, now, seconds))

    def send(self, now: float, seconds: float) -> float:
        """When what is sent now is there."""
        while self.queue and max(self.free, self.queue[0][1]) < now:
            self.next()
        self.free = max(now, self.free) + seconds
        return self.free

    def wait(self, move: Move) -> float:
        """When a gather that has started is there."""
        while move not in self.ends:
            self.next()
        return self.ends.pop(move)

    def next(self) -> None:
        """Sends the first of the queue."""
        move, begin, seconds = self.queue.popleft()
        self.ends[move] = self.free = max(begin, self.free) + seconds


class _Clock(Protocol):
    """What a device computes and what is sent, in order."""

    sent: list[_Sent]

    def tried(self) -> Iterable[int]:
        """How many bytes may be ahead of their uses, from none on."""
        ...

    def waiting(self, most: int) -> list[float]:
        """The seconds in which a device only waits for what is sent, in all trips, with so many bytes ahead of their uses."""
        ...

    def start(self, most: int) -> None:
        """Lets gathers start so far ahead."""
        ...


class _Program:
    """The clock of the program, around its loops."""

    def __init__(self, placements: Placements, sent: list[_Sent]) -> None:
        program = placements.program
        self.sent = sent
        self.gathers = [each for each in self.sent if _may_start_earlier(each.move)]
        self.sizes = [placements.local_bytes(each.move.value, each.move.target) for each in self.gathers]
        uses = [each.use for each in self.gathers]
        self.earliest = [bisect_right(uses, program.producer[each.move.value]) for each in self.gathers]
        """The first gather with whose use each may start: what it sends is there."""

    def tried(self) -> Iterable[int]:
        return (count * max(self.sizes) for count in COUNTS)

    def hosts(self, most: int) -> list[int]:
        """For each gather, the first with whose use it may start if no more than so many bytes are ahead of their uses."""
        found, host, total = list[int](), 0, [0, *accumulate(self.sizes)]
        for number, earliest in enumerate(self.earliest):
            while total[number + 1] - total[host + 1] > most:
                host += 1
            found.append(min(max(host, earliest), number))
        return found

    def waiting(self, most: int) -> list[float]:
        starting = dict[Move, list[_Sent]]()
        for each, host in zip(self.gathers, self.hosts(most), strict=True):
            starting.setdefault(self.gathers[host].move, []).append(each)
        waited, link, found = 0.0, Link(), list[float]()
        for each in self.sent:
            now = waited + each.after
            for started in starting.get(each.move, ()):
                link.start(started.move, now, started.seconds)
            end = link.wait(each.move) if _may_start_earlier(each.move) else link.send(now, each.seconds)
            found.append(max(0.0, end - now))
            waited += found[-1]
        return found

    def start(self, most: int) -> None:
        for number, host in enumerate(self.hosts(most)):
            self.gathers[number].move.during = self.gathers[host].move if host < number else None


class _Trip:
    """The clock of a scan, in one trip after another.

    A gather of a parameter's rows starts as soon as the link is free in its trip, or with the use of the last of them in the
    trip before.
    """

    def __init__(self, placements: Placements, sent: list[_Sent], region: int, span: tuple[float, float]) -> None:
        program, self.sent = placements.program, sent
        self.begin, self.end = span
        self.trips = program.likely_trips(region)
        self.gathers = [each for each in self.sent if each.move.region == region and may_start_a_trip_ahead(program, each.move)]
        self.sizes = [placements.local_bytes(each.move.value, each.move.target) for each in self.gathers]

    def tried(self) -> Iterable[int]:
        return accumulate(self.sizes, initial=0)

    def ahead(self, most: int) -> list[_Sent]:
        """The gathers that start a trip ahead: the first that a trip needs, of so many bytes."""
        return [each for each, total in zip(self.gathers, accumulate(self.sizes), strict=True) if total <= most]

    def waiting(self, most: int) -> list[float]:
        ahead, last = self.ahead(most), self.gathers[-1]
        ends, link, waited, found = {id(each): 0.0 for each in ahead}, Link(), 0.0, list[float]()
        for trip in range(2):
            found, begin = list[float](), trip * (self.end - self.begin) / self.trips
            for each in self.gathers[len(ahead) :]:
                ends[id(each)] = link.send(begin + waited, each.seconds / self.trips)
            for each in self.sent:
                now = begin + waited + (each.after - self.begin) / self.trips
                if (end := ends.pop(id(each), None)) is None:
                    end = link.send(now, each.seconds / self.trips)
                found.append(max(0.0, end - now))
                waited += found[-1]
                for started in ahead if each is last else ():
                    ends[id(started)] = link.send(now + found[-1], started.seconds / self.trips)
        return [each * self.trips for each in found]

    def start(self, most: int) -> None:
        for each in self.ahead(most):
            each.move.trip_ahead = self.gathers[-1].move


def decide_all(table: Table, donated: Callable[[Placements], int] = lambda _: 0) -> Decisions:
    """Returns all decisions of a plan, within the memory that a device has.

    `donated` says how many bytes of results take the buffers of donated arguments.
    """
    return _started_ahead(within_memory(decide(table), donated), donated)


def _started_ahead(found: Decisions, donated: Callable[[Placements], int]) -> Decisions:
    """The decisions in which gathers start ahead of their uses where that saves time; none does on device sets.

    With ranges on loops, those in scans may, in the trips of these loops.
    """
    placements = found.placements
    if placements.table.sets is not None:
        return found
    sending = {move.region for move in found.moves if move.communicates}
    loops = [region for region in scans(placements.program) if region in sending]
    if not loops and sum(map(_may_start_earlier, found.moves)) < 2:
        return found
    after, stored = _computed(placements), _stored(found)
    room, held = _room(found, stored, donated), _held(found, stored // HELD)
    sent, inside = _sent(found, after, held), dict[int, list[_Sent]]()
    for each in sent:
        for region in placements.program.outward(each.move.region):
            inside.setdefault(region, []).append(each)
    spans = _spans(placements.program, after) if loops else {}
    for region in loops:
        trip = _Trip(placements, inside[region], region, spans[region])
        if trip.gathers:
            found.ahead[region] = ahead = _started(trip, room - found.bytes_ahead(region))
            for each in trip.sent:
                # What is hidden in a loop takes no time around it.
                each.seconds = ahead.seconds[each.move]
    whole = _Program(placements, sent)
    if len(whole.gathers) > 1 and not placements.table.has_loops:
        found.ahead[0] = _started(whole, room - max(map(found.bytes_ahead, found.ahead), default=0))
    return found


def _started(clock: _Clock, room: int) -> Ahead:
    """Lets gathers start as far ahead as saves time, of what there is room for."""
    exposed, most = {tried: sum(clock.waiting(tried)) for tried in clock.tried()}, 0
    for tried in takewhile(lambda tried: tried <= room, exposed):
        if Price(exposed[tried] * (1 + 1 / SLIGHT), 0, tried).pays(Price(exposed[most], 0, most)):
            most = tried
    clock.start(most)
    return Ahead(most, room, exposed, dict(zip((each.move for each in clock.sent), clock.waiting(most), strict=True)))


def _held(found: Decisions, most: int) -> set[Move]:
    """Lets the gathers of the smallest parameters wait for nothing, and returns them.

    Of equal gathers that do not wait, a compiler makes one, and holds what it brings until its last use.
    """
    gathers, held, total = dict[ValueId, list[Move]](), set[Move](), 0
    for move in filter(_may_start_earlier, found.moves):
        gathers.setdefault(move.value, []).append(move)
    sizes = {value: max(found.placements.local_bytes(value, move.target) for move in of) for value, of in gathers.items()}
    for value in sorted(sizes, key=sizes.__getitem__):
        total += sizes[value]
        if total > most:
            break
        held.update(gathers[value])
    for move in held:
        move.anchor = NO_VALUE
    return held


def _sent(found: Decisions, after: Sequence[float], held: set[Move]) -> list[_Sent]:
    """What is sent, in the order in which it is needed, without the gathers of what is held."""
    program, made = found.placements.program, list[_Sent]()
    readers = {move.before: move for move in reversed(found.moves) if move.before is not None and move.uses}
    for move in found.moves:
        if move.communicates and move not in held:
            reader = move if move.uses else readers.get(move, move)
            use = first_use(reader)[0] if reader.uses else NodeId(program.producer[move.value] + 1)
            seconds = Price.of(program.mesh, [(move.path, 1)]).with_starts * program.likely_trips(move.region)
            made.append(_Sent(move, use, after[min(use, program.end)], seconds))
    return sorted(made, key=attrgetter("use"))


def _may_start_earlier(move: Move) -> bool:
    """Whether a move is a gather that waits for what starts its use, outside of loops and branches."""
    return move.waits and bool(move.uses) and not move.region


def may_start_a_trip_ahead(program: Program, move: Move) -> bool:
    """Whether a move, in the body of a scan, is a gather of what does not depend on the trips before.

    It is of a parameter's rows, as they are, moved or cast.
    """
    alone = move.before is None and not move.together and not move.waits and not move.pending and bool(move.uses)
    if not (alone and move.communicates):
        return False
    values = [move.value]
    for value in values:
        node = program.maker(value)
        if not program.parameter[value] or node is None or node.op_name == "carry":
            return False
        if not node.is_border:
            values += node.operands
    return True


def scans(program: Program) -> Iterator[int]:
    """Yields the bodies of scans of more than one trip."""
    controls: Iterator[Control] = (control for controls in program.controls for control in controls)
    for control in controls:
        if control.op.name == "lax.scan" and program.regions[control.regions[0]].trips > 1:
            yield control.regions[0]


def _spans(program: Program, after: Sequence[float]) -> dict[int, tuple[float, float]]:
    """For each loop and branch, the seconds that a device has computed before it, and after it."""
    found = dict[int, tuple[float, float]]()
    for node in program.nodes:
        for region in program.outward(node.region):
            found[region] = found.get(region, (after[node.number],))[0], after[node.number + 1]
    return found


def _stored(found: Decisions) -> int:
    """The bytes that a device stores at its peak, if no gather starts ahead of its use."""
    arguments, results = bytes_of_ends(found.placements)
    return sum(arguments) + sum(results) + live_ranges(found, arguments).peak.bytes


def _room(found: Decisions, stored: int, donated: Callable[[Placements], int]) -> int:
    """The bytes that may be gathered ahead: of the memory that a mesh says, or a share of what a device stores anyway."""
    chip = found.placements.program.mesh.chip
    free = max(0, chip.memory - stored + donated(found.placements))
    return free if chip.memory != CHIPS[chip.name].memory else min(free, stored // SHARE)


def _computed(placements: Placements) -> list[float]:
    """For each op, and for the end of the program, the seconds that a device has computed before it, in all trips of loops."""
    spent, after, known, program = 0.0, list[float](), dict[int, float](), placements.program
    for node, placed in zip(program.nodes, placements.nodes, strict=True):
        after.append(spent)
        if (seconds := known.get(id(placed))) is None:
            seconds = known[id(placed)] = seconds_of(placements, node, placed)
        spent += seconds * program.likely_trips(node.region) if node.region else seconds
    return [*after, spent]


def seconds_of(placements: Placements, node: Node, placed: OpPlacement) -> float:
    """The time of an op: of its flops, or of reading its operands and writing its results, if they are not made in readers."""
    if node.is_border or traits(node.signature.definition).maps:
        return 0.0
    chip = placements.program.mesh.chip
    moved = sum(map(placements.local_bytes, node.operands, placed.wanted)) + sum(
        map(placements.local_bytes, node.results, placed.produced)
    )
    return max(computed(node, placed) / chip.flops_per_second, moved / chip.memory_bytes_per_second)
