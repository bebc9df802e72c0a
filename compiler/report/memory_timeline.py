"""Memory over time: the bytes that one device stores while each step of the program runs, by kind, and the largest arrays.

received        what a collective makes
backward        made by the forward pass, and read by the backward pass
other           the other temporaries
inside          what loops and branches store while they run
arguments and results are stored all the time

A loop takes as much of the time as one of its trips has steps, and a `cond` as the branch that stores the most:

    dot, scan of (dot, tanh), sum   -->   the start, dot, scan, dot in scan, tanh in scan, sum
"""

from collections.abc import Iterator, Sequence
from heapq import nlargest, nsmallest
from itertools import accumulate, chain, repeat
from typing import NamedTuple

from ...rewrites.decide.live_ranges import LiveRanges, LocalArray, MemoryStep, over_steps
from ..cost.counts import COLLECTIVES
from ..cost.memory import Memory, over_time
from ..inputs.lines import place_of
from ..page.string_table import Json, Pools
from ..plan.source_lines import line_of, line_of_op
from ..plan.state import State
from ..views.listing import starred
from .scopes import Scopes

KINDS_OF_ARRAYS = ("received", "backward", "other")
POINTS = 240
"""The most points in time that a page has. Each shows the maximum since the point before."""
MOST_BARS = 64
MOST_ROWS = 60


def memory_json(plan: State, kinds: Sequence[int], pools: Pools) -> Json:
    """The memory of a step: its totals, its course over time, and the arrays that are large at the peak.

    `kinds` are those of the arguments and results, which come first.
    """
    stored, ranges = over_time(plan)
    rows = _rows(stored, kinds)
    line = _Course(plan, ranges, pools)
    return {
        "bytes": stored.bytes,
        "arguments": stored.arguments,
        # What takes the buffer of a donated argument takes no room of its own.
        "results": stored.results - stored.donated,
        "temporaries": stored.temporaries,
        "at": pools.text(stored.at),
        "rows": [_row(stored, some, pools) for some in rows],
        **line.json(pools),
    }


def _rows(stored: Memory, kinds: Sequence[int]) -> list[list[int]]:
    """The numbers of the arrays in each row, the largest row first. Arrays of layers that are alike are one row."""
    sizes, outer = stored.sizes, len(stored.sizes) - len(stored.peak.arrays)
    temporaries = map(stored.array, range(outer, len(sizes)))
    of: list[object] = [*kinds[:outer], *((starred(each.value), each.form, place_of(each.source)) for each in temporaries)]
    totals: dict[object, int] = {}
    for each in stored.largest:
        totals[of[each]] = totals.get(of[each], 0) + sizes[each]
    rows = {key: list[int]() for key in nlargest(MOST_ROWS, totals, key=totals.__getitem__)}
    for each in stored.largest:
        if of[each] in rows:
            rows[of[each]].append(each)
    return [*rows.values()]


def _row(stored: Memory, some: Sequence[int], pools: Pools) -> Json:
    first = stored.array(some[0])
    return {
        "value": pools.text(starred(first.value) if len(some) > 1 else first.value),
        "count": len(some),
        "kind": first.kind,
        "form": first.form,
        "line": pools.line(first.source),
        "bytes": sum(stored.sizes[each] for each in some),
    }


class _Moment(NamedTuple):
    """One point in time: the step that runs, the bytes stored inside of loops and branches, and the innermost of these.

    `within` is the number of its region; 0 is the program.
    """

    step: MemoryStep | None
    inside: int = 0
    within: int = 0


class _Lasting(NamedTuple):
    """An array with its kind, and the first and last moment at which it is stored."""

    array: LocalArray
    kind: str
    first: int
    last: int


def _trip(ranges: LiveRanges) -> Iterator[_Moment]:
    """Yields the moments of one trip of a loop or branch. One comes before its first step."""
    region, stored = ranges.region, ranges.stored()
    yield _Moment(None, max(0, stored[0]), region)
    for number, (step, own) in enumerate(zip(ranges.steps, stored[1:], strict=True)):
        within = ranges.inside.get(number)
        for each in (_Moment(step, 0, region),) if within is None else _trip(within):
            yield each._replace(inside=max(0, each.inside + own))


class _Course:
    """The bytes that are stored from moment to moment. One comes before the first step of the program."""

    def __init__(self, plan: State, ranges: LiveRanges, pools: Pools) -> None:
        self.plan, self.ranges = plan, ranges
        self.times = [*chain.from_iterable(map(repeat, range(-1, len(ranges.steps)), [1, *_widths(ranges)]))]
        """For each moment the number of the program's own step."""
        starts = _starts(ranges, 0)
        self.trips = {
            moment: each for time, body in ranges.inside.items() for moment, each in enumerate(_trip(body), starts[time])
        }
        """The moments in loops and branches; at all others, a step of the program itself runs."""
        self.directions = dict[MemoryStep, str]()
        self.kinds = [self.kind(array) for array in ranges.arrays]
        self.names = [around.parts[-1].text if around.parts else "" for around in Scopes(plan, pools).regions]

    def direction(self, step: MemoryStep) -> str:
        """The direction of an op or a loop; empty for a redistribution, and in a program without gradients."""
        found = self.directions.get(step)
        if found is None:
            found = self.directions[step] = self._direction(step)
        return found

    def _direction(self, step: MemoryStep) -> str:
        program = self.plan.source.program
        number = program.producer[step.makes[0].value] if step.bodies and step.makes else step.node
        source = line_of_op(self.plan, program.nodes[number]) if number >= 0 else None
        return "" if source is None else source.direction

    def kind(self, array: LocalArray) -> str:
        if array.form in COLLECTIVES:
            return "received"
        steps = self.ranges.steps
        is_kept = array.last < len(steps) and self.direction(steps[array.first]) == "forward"
        return "backward" if is_kept and self.direction(steps[array.last]) == "backward" else "other"

    def json(self, pools: Pools) -> Json:
        stored = self.ranges.stored()
        totals = [stored[time + 1] for time in self.times]
        for moment, each in self.trips.items():
            totals[moment] += each.inside
        # Of stretches of the same length the first time with the most bytes.
        length = -(-len(totals) // POINTS)
        stretches = (range(start, min(start + length, len(totals))) for start in range(0, len(totals), length))
        shown = [max(each, key=totals.__getitem__) for each in stretches]
        peak = max(shown, key=totals.__getitem__)
        # Of the largest arrays, those that are alive at the peak come before the others.
        largest = nsmallest(
            MOST_BARS, self.lasting(), key=lambda each: (not each.first <= peak <= each.last, -each.array.bytes)
        )
        return {
            "steps": len(totals),
            "peak": peak,
            "times": shown,
            "series": self.series(shown),
            "running": [pools.text(self.name(self.moment(each))) for each in shown],
            "bars": [self.bar(each, pools) for each in sorted(largest, key=lambda each: each.first)],
            "loops": [[pools.text(self.names[each.region]), first, end - 1] for each, first, end in _regions(self.ranges, 0)],
        }

    def series(self, shown: Sequence[int]) -> dict[str, list[int]]:
        """The bytes of each kind at some moments."""
        of_kind: dict[str, list[LocalArray]] = {kind: [] for kind in KINDS_OF_ARRAYS}
        for array, kind in zip(self.ranges.arrays, self.kinds, strict=True):
            of_kind[kind].append(array)
        own = {kind: over_steps(its, len(self.ranges.steps)) for kind, its in of_kind.items()}
        found = {kind: [each[self.times[moment] + 1] for moment in shown] for kind, each in own.items()}
        return {**found, "inside": [self.moment(each).inside for each in shown]}

    def moment(self, number: int) -> _Moment:
        time = self.times[number]
        return self.trips.get(number) or _Moment(self.ranges.steps[time] if time >= 0 else None)

    def name(self, moment: _Moment) -> str:
        """What runs at a moment, in text: the op, its direction, and the loop or branch around it."""
        within = self.names[moment.within]
        if moment.step is None:
            return "the start" + (f" of {within}" if within else "")
        said = self.direction(moment.step)
        return moment.step.name.removeprefix("lax.") + (f" ({said})" if said else "") + (f" in {within}" if within else "")

    def lasting(self) -> Iterator[_Lasting]:
        """Yields the arrays of the program and of its loops and branches, with the moments at which they are stored."""
        for kind, (array, first, last) in zip(self.kinds, _ends(self.ranges, 0, len(self.times)), strict=True):
            yield _Lasting(array, kind, first, last)
        for region, start, end in _regions(self.ranges, 0):
            for array, first, last in _ends(region, start, end):
                yield _Lasting(array, "inside", first, last)

    def bar(self, lasting: _Lasting, pools: Pools) -> list[object]:
        """A bar of the chart: name, kind, bytes, first and last moment, and the source line."""
        array = lasting.array
        name = self.plan.source.addresses.names[array.value] + (f" ({array.form})" if array.form else "")
        line = pools.line(line_of(self.plan, array.value, None))
        return [pools.text(name), lasting.kind, array.bytes, lasting.first, lasting.last, line]


def _widths(ranges: LiveRanges) -> list[int]:
    """The number of moments that each step takes."""
    found = [1] * len(ranges.steps)
    for time, body in ranges.inside.items():
        found[time] = 1 + sum(_widths(body))
    return found


def _starts(ranges: LiveRanges, start: int) -> list[int]:
    """The first moment of each step of a trip that starts at `start`, and the moment after its last step."""
    return [*accumulate(_widths(ranges), initial=start + 1)]


def _regions(ranges: LiveRanges, start: int) -> Iterator[tuple[LiveRanges, int, int]]:
    """Yields all loops and branches in a ranges, outer ones first, each with its first moment and the one after its last."""
    starts = _starts(ranges, start) if ranges.inside else []
    for time, within in ranges.inside.items():
        yield within, starts[time], starts[time + 1]
        yield from _regions(within, starts[time])


def _ends(ranges: LiveRanges, start: int, end: int) -> Iterator[tuple[LocalArray, int, int]]:
    """Yields the arrays of a trip between two moments, each with the first and last moment at which it is stored."""
    starts = [start, *_starts(ranges, start), end]
    for array in ranges.arrays:
        yield array, starts[array.first + 1], starts[array.last + 2] - 1
