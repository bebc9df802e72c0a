"""What is sent in each trip of loops, because a device has no memory to hold it in all trips.

%w {data*8, 64}, read by a loop   -->   gathered once, before the loop; in each trip if a device cannot hold all such values
"""

from bisect import bisect_left

from ...rewrites.decide.decide import Decisions, sent_in_trips
from ...rewrites.decide.in_trips import once
from ...rewrites.decide.placements import boundary
from ...rewrites.lower.live_ranges import live_ranges
from ..trace.trace import Traced
from .donation import donated_bytes


def within_memory(traced: Traced, found: Decisions) -> Decisions:
    """The decisions in which no more is sent in each trip than has to be, for a device's memory to suffice if it can."""
    if not found.placements.table.has_loops or not (held := once(found)):
        return found
    limit, known = found.placements.program.mesh.chip.memory, {0: found}

    def sent(count: int) -> Decisions:
        """The decisions in which so many values are sent in each trip."""
        if count not in known:
            known[count] = sent_in_trips(found, [each.value for each in held[:count]])
        return known[count]

    counts = range(len(held) + 1)
    return sent(min(bisect_left(counts, True, key=lambda count: peak(traced, sent(count)) <= limit), len(held)))


def peak(traced: Traced, found: Decisions) -> int:
    """The most bytes that a device stores at one time, but for what one loop stores for a later one."""
    placements, program = found.placements, found.placements.program
    ends = ((value, boundary(placements, value)) for value in (*program.arguments, *program.returned))
    sizes = [placements.local_bytes(value, layout) for value, layout in ends]
    inside = live_ranges(found, sizes[: len(program.arguments)]).peak.bytes
    return sum(sizes) + inside - donated_bytes(traced, placements)
