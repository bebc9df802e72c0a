"""What is sent in each trip of loops, because a device has no memory to hold it in all trips.

%w {data*8, 64}, read by a loop   -->   gathered once, before the loop; in each trip if a device cannot hold all such values
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from .decide import Decisions, sent_in_trips
from .in_trips import once
from .live_ranges import live_ranges
from .placements import Placements, boundary


def within_memory(found: Decisions, donated: Callable[[Placements], int] = lambda _: 0) -> Decisions:
    """The decisions in which no more is sent in each trip than has to be, for a device's memory to suffice if it can.

    `donated` says how many bytes of results take the buffers of donated arguments.
    """
    if not found.placements.table.has_loops or not (held := once(found)):
        return found
    limit, known = found.placements.program.mesh.chip.memory, {0: found}

    def sent(count: int) -> Decisions:
        """The decisions in which so many values are sent in each trip."""
        if count not in known:
            known[count] = sent_in_trips(found, held[:count])
        return known[count]

    def fits(count: int) -> bool:
        return _peak(sent(count)) - donated(found.placements) <= limit

    return sent(min(bisect_left(range(len(held) + 1), True, key=fits), len(held)))


def _peak(found: Decisions) -> int:
    """The most bytes that a device stores at one time, but for what one loop stores for a later one."""
    placements, program = found.placements, found.placements.program
    ends = ((value, boundary(placements, value)) for value in (*program.arguments, *program.returned))
    sizes = [placements.local_bytes(value, layout) for value, layout in ends]
    return sum(sizes) + live_ranges(found, sizes[: len(program.arguments)]).peak.bytes
