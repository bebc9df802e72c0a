"""Memory over time: what one device stores while each step of the program runs, by kind, and the largest arrays of it.

received        what a collective makes
backward        made by the forward pass, and read by the backward pass
other           the other temporaries
inside          what loops and branches store while they run
arguments and results are stored all the time
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ..inputs.lines import place_of
from ..memory.live_ranges import Buffer, Profile
from ..memory.local_arrays import Step
from ..plan.collectives import line_of
from ..plan.counts import KINDS
from ..plan.memory import Stored, over_time
from ..plan.state import State
from ..views.listing import starred
from .pool import Json, Pools

KINDS_OF_BUFFERS = ("received", "backward", "other")
POINTS = 240
"""The most points in time that a page has; each has the most that is stored since the one before."""
MOST_BARS = 64
MOST_ROWS = 60


def memory_json(plan: State, pools: Pools) -> Json:
    """The memory of a step: its parts, its course, the arrays that are large at the peak."""
    stored, profile = over_time(plan)
    line = _Course(plan, profile)
    return {
        "bytes": stored.bytes,
        "arguments": stored.arguments,
        "results": stored.results,
        "temporaries": stored.temporaries,
        "at": pools.text(stored.at),
        "rows": _rows(stored.arrays, pools),
        **line.json(pools),
    }


def _rows(arrays: Sequence[Stored], pools: Pools) -> list[Json]:
    """What is stored at the peak, arrays of layers that are alike together, the most first."""
    alike: dict[object, list[Stored]] = {}
    for each in arrays:
        alike.setdefault((each.kind, starred(each.value), each.form, place_of(each.source)), []).append(each)
    rows = sorted(alike.values(), key=lambda some: -sum(each.bytes for each in some))
    return [_stored(some, pools) for some in rows[:MOST_ROWS]]


def _stored(some: Sequence[Stored], pools: Pools) -> Json:
    first = some[0]
    return {
        "value": pools.text(starred(first.value) if len(some) > 1 else first.value),
        "count": len(some),
        "kind": first.kind,
        "form": first.form,
        "line": pools.line(first.source),
        "bytes": sum(each.bytes for each in some),
    }


class _Course:
    """What is stored from step to step. Time 0 is before the first step."""

    def __init__(self, plan: State, profile: Profile) -> None:
        self.plan, self.profile = plan, profile
        self.directions = [self.direction(step) for step in profile.steps]
        self.kinds = [self.kind(buffer) for buffer in profile.buffers]

    def direction(self, step: Step) -> str:
        """The direction of an op, or of a loop; empty for a redistribution, and in a program without gradients."""
        program, sources = self.plan.source.program, self.plan.source.traced.sources
        number = program.producer[step.makes[0].value] if step.bodies and step.makes else step.node
        op = program.nodes[number].op if number >= 0 else None
        return sources[op].direction if op is not None and op in sources else ""

    def kind(self, buffer: Buffer) -> str:
        if any(each.form in KINDS for each in buffer.arrays):
            return "received"
        maker = buffer.arrays[0].maker
        made = self.direction(maker) if maker is not None else ""
        read = self.directions[buffer.last] if 0 <= buffer.last < len(self.directions) else ""
        return "backward" if made == "forward" and read == "backward" else "other"

    def json(self, pools: Pools) -> Json:
        series = {kind: self.series(kind) for kind in KINDS_OF_BUFFERS}
        series["inside"] = [0, *(self.profile.inner.get(time, 0) for time in range(len(self.profile.steps)))]
        totals = [sum(each) for each in zip(*series.values(), strict=True)]
        times = list(_highest(totals))
        peak = max(range(len(totals)), key=totals.__getitem__)
        return {
            "steps": len(totals),
            "peak": peak,
            "times": times,
            "series": {kind: [each[time] for time in times] for kind, each in series.items()},
            "running": [pools.text(self.name(time)) for time in times],
            "bars": [self.bar(number, pools) for number in self.largest(peak)],
        }

    def series(self, kind: str) -> list[int]:
        """The bytes of one kind at each time."""
        change = [0] * (len(self.profile.steps) + 2)
        for buffer, its in zip(self.profile.buffers, self.kinds, strict=True):
            if its == kind:
                change[buffer.first + 1] += buffer.bytes
                change[min(buffer.last + 2, len(change) - 1)] -= buffer.bytes
        return list(accumulate(change[:-1]))

    def name(self, time: int) -> str:
        """What runs at a time, with its direction."""
        if time == 0:
            return "the start"
        said = self.directions[time - 1]
        return self.profile.steps[time - 1].name + (f" ({said})" if said else "")

    def largest(self, peak: int) -> list[int]:
        """The largest buffers, those that are alive at the peak before the others, in the order of their beginning."""
        buffers = self.profile.buffers
        ranked = sorted(range(len(buffers)), key=lambda at: (not _is_alive(buffers[at], peak), -buffers[at].bytes))
        return sorted(ranked[:MOST_BARS], key=lambda at: (buffers[at].first, at))

    def bar(self, number: int, pools: Pools) -> list[object]:
        """A buffer: what is in it, its kind, its bytes, its first and its last time, and the line that makes it."""
        buffer = self.profile.buffers[number]
        array = buffer.arrays[-1]
        name = self.plan.source.addresses.names[array.value] + (f" ({array.form})" if array.form else "")
        line = pools.line(line_of(self.plan, array.value, None))
        return [pools.text(name), self.kinds[number], buffer.bytes, buffer.first + 1, buffer.last + 1, line]


def _is_alive(buffer: Buffer, time: int) -> bool:
    return buffer.first + 1 <= time <= buffer.last + 1


def _highest(totals: Sequence[int]) -> Iterator[int]:
    """The times to draw: of stretches of the same length the first time with the most bytes."""
    length = -(-len(totals) // POINTS)
    for start in range(0, len(totals), length):
        yield max(range(start, min(start + length, len(totals))), key=totals.__getitem__)
