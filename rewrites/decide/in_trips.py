"""What is sent once around a loop, or in each of its trips: parameters that all trips read, and sums to which all trips add.

A loop reads the same parameter in all trips, so it is gathered once, before the loop; the sum of all trips is scattered once,
after it. Meanwhile a device holds all of it. To send it in each trip takes as many times the bytes as there are trips, and a
device holds all of it no longer than a trip uses it.

    %w {data*8, 64}, read by 4 trips   -->   all_gather over (data)         or   each_trip over (t:4); all_gather over (data)
    %g {+data, +t}, of 4 trips         -->   all_reduce over (t:4);         or   reduce_scatter over (data), in 4 trips;
                                             reduce_scatter over (data)          all_reduce over (t:4)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Loop, Place, in_time, major_to_minor
from ..program.program import NodeId, ValueId
from ..redistribute.kinds.local import EachTrip
from ..redistribute.search import Path, path
from ..redistribute.steps import Bytes
from .placements import Placements


def is_in_each_trip(placements: Placements, value: ValueId) -> bool:
    """Whether a value is sent in each trip of the loops that read it, or add to it."""
    chosen = placements.each_trip
    return bool(chosen) and (value in chosen or placements.program.source(value) in chosen)


def loops_of(placements: Placements, value: ValueId, uses: Iterable[tuple[NodeId, int]]) -> tuple[Place, ...]:
    """The loops in whose trips all of these uses read a value that is the same in all trips."""
    ran, end = {number for number, _ in uses}, placements.program.end
    if not ran or end in ran:
        return ()
    first, *rest = (in_time(factor.axis for _, factor in placements.nodes[number].placement) for number in ran)
    own = placements.with_sums(value).named
    return major_to_minor(place for place in first if place not in own and all(place in each for each in rest))


def gathered_in_trips(way: Path, loops: Sequence[Place], begins: bool) -> Path:
    """The path of a value that is the same in all trips of loops, in each trip. `begins`: no move before it is in the trips."""
    start = way.steps[0].before
    enters = (EachTrip(axes=(loop,), before=start, after=start) for loop in loops if begins)
    return Path.of(*enters, *(replace(step, loops=(*step.loops, *loops)) for step in way.steps))


def scattered_in_trips(source: Layout, target: Layout, itemsize: int) -> Path | None:
    """The path of a sum over loops and axes that is folded over the axes in each trip; None if there is no other than that.

    ```
    [64, 8]{+data, +t} to [data*16, 8]   -->   reduce_scatter over (data) in each trip; all_reduce over (t)
    ```
    """
    resolved = tuple(each for each in source.pending if each not in target.pending)
    later = tuple(each for each in resolved if isinstance(each.axis, Loop))
    is_one = len({each.monoid for each in resolved}) == 1
    if not later or len(later) == len(resolved) or not is_one or any(each.axis in target.axes for each in later):
        return None
    between = target.with_pending((*later, *target.pending))
    return path(source, between, itemsize) + path(between, target, itemsize)


@dataclass(frozen=True, slots=True)
class Once:
    """A value that is sent once around a loop, and could be sent in each trip."""

    value: ValueId
    held: int = 0
    """The bytes that a device holds in all trips because of it."""
    more: Bytes = 0
    """The bytes that a device would receive more in a call."""
    seconds: float = 0
    """How much longer that takes."""

    def __add__(self, other: Once) -> Once:
        return Once(self.value, self.held + other.held, self.more + other.more, self.seconds + other.seconds)
