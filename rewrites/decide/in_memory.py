"""What is sent in each trip of loops, because a device has no memory to hold it in all trips.

%w {data*8, 64}, read by a loop   -->   gathered once, before the loop; in each trip if a device cannot hold all such values
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from ..program.program import ValueId
from .decide import Decisions, Move, sent_in_trips
from .in_trips import Once, gathered_in_trips, loops_of, scattered_in_trips
from .live_ranges import bytes_of_ends, live_ranges
from .placements import Placements
from .price import Price


def within_memory(found: Decisions, donated: Callable[[Placements], int]) -> Decisions:
    """The decisions in which no more is sent in each trip than has to be, for a device's memory to suffice if it can.

    What takes the least time for the memory that it frees is sent so first.

    `donated` says how many bytes of results take the buffers of donated arguments.
    """
    if not (held := once(found)):
        return found
    placements, ways, taken = found.placements, {0: found}, dict[int, int]()
    arguments, results = bytes_of_ends(placements)
    room = placements.program.mesh.chip.memory - sum(arguments) - sum(results) + donated(placements)

    def fits(count: int) -> bool:
        """Whether a device has the memory if so many values are sent in each trip."""
        if count not in ways:
            ways[count] = sent_in_trips(found, held[:count])
        # But for what one loop stores for a later one.
        taken[count] = live_ranges(ways[count], arguments).peak.bytes
        return taken[count] <= room

    if fits(0) or not fits(len(held)):
        # Where the memory does not suffice in any case, as little of it as can be.
        return ways[min(taken, key=lambda count: (taken[count], count))]
    return ways[bisect_left(range(len(held)), True, key=fits)]


def once(found: Decisions) -> list[Once]:
    """The values that are sent once around a loop, of which a device then holds more than its part; the cheapest first.

    These take the least time in each trip for the memory that it frees.
    """
    every = dict[ValueId, Once]()
    for move in found.moves if found.placements.table.has_loops else ():
        if move.communicates and (one := _once(found.placements, move)) is not None and one.held > 0:
            every[one.value] = every[one.value] + one if one.value in every else one
    return sorted(every.values(), key=lambda each: each.seconds / each.held)


def _once(placements: Placements, move: Move) -> Once | None:
    """A move that runs once around a loop; None if it runs in its trips, or could not."""
    value, ends = move.value, (move.source, move.target)
    scattered = scattered_in_trips(move.source, move.target, placements.width(value))
    loops = loops_of(placements, value, move.uses)
    if move.is_said or (scattered is None and not loops):
        return None
    here, there = (placements.local_bytes(value, layout) for layout in ends)
    if scattered is not None:
        held, ways = here - there, [scattered]
    else:
        held, ways = there - here, [gathered_in_trips(move.path, loops, begins=True)] * len(move.uses)
    mesh, more = placements.program.mesh, sum(way.bytes for way in ways) - move.path.bytes
    each, now = (Price.of(mesh, ((way, 1) for way in some)).seconds for some in (ways, [move.path]))
    return Once(value, held, more, each - now)
