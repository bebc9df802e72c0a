"""From when to when each array is stored, which arrays share a buffer, and the most bytes that are stored at one time.

a = dot; b = tanh a; c = dot b       a and b share a buffer, because b takes the place of a
a = dot; b = dot a; ...; r = dot     a is in the buffer of the result `r` of the program, which is free until then
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from .fusion import Reads, Sources
from .local_arrays import Body, LocalArray, Step
from .order import in_order


@dataclass(slots=True, eq=False)
class Buffer:
    """Bytes that one array after another has, from the step `first` to the step `last`."""

    bytes: int
    first: int
    last: int
    arrays: list[LocalArray]
    hosted: bool = False
    """Whether it lies in the buffer of a result."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that a body stores at one time, results of the program left out: when, and which arrays.

    `step` is None if that is before the first step.
    """

    bytes: int
    step: Step | None = None
    arrays: tuple[LocalArray, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """What a body stores over time, results of the program left out.

    `steps` are in the order in which they run. `buffers` say from when to when, by the numbers of steps, -1 for before the
    first one. `inside` has for each loop one of its trips, and for each `cond` the branch that stores the most: the region
    with that number in the program. The step around a region counts `counted` bytes of its buffers.
    """

    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    inside: dict[int, Profile]
    region: int = 0
    counted: int = 0

    def stored(self) -> list[int]:
        """The bytes before the first step, then those while each step runs, beyond what the step around counts.

        They are without those inside of loops and branches.
        """
        return [each - self.counted for each in over_steps(self.buffers, len(self.steps))]


@dataclass(slots=True)
class _Timeline:
    """The buffers of a body. `is_main`: it is the program, whose results have buffers of their own."""

    body: Body
    is_main: bool
    steps: list[Step] = field(init=False)
    last: dict[LocalArray, int] = field(init=False)
    buffers: list[Buffer] = field(init=False)
    of: dict[LocalArray, Buffer] = field(init=False)
    inner: dict[int, Peak] = field(init=False)

    def __post_init__(self) -> None:
        sources = Sources(self.body.makers)
        self.steps, reads = in_order(self.body, sources)
        self.buffers, self.of = [], {}
        self.last = {array: time for time, read in enumerate(reads) for array in read}
        self.last.update((array, len(self.steps)) for result in self.body.results for array in sources.of(result, False))
        within = ((time, _inside(step)) for time, step in enumerate(self.steps) if step.bodies)
        self.inner = {time: inner for time, inner in within if inner.bytes > 0}
        for carry in self.body.carries:
            self.add(carry, -1)
        for time, (step, read) in enumerate(zip(self.steps, reads, strict=True)):
            self.step(step, read, time)
        if self.is_main:
            self.host()

    def add(self, array: LocalArray, first: int) -> None:
        buffer = Buffer(self.size(array), first, self.last.get(array, first), [array])
        self.of[array] = buffer
        self.buffers.append(buffer)

    def size(self, array: LocalArray) -> int:
        """The bytes that an array adds: none for a result of the program."""
        return 0 if self.is_main and array.is_result else array.bytes

    def step(self, step: Step, reads: Reads, time: int) -> None:
        """Stores what a step makes, in place of what it is the last to read if it can."""
        free = [self.of[each] for each, aligned in reads.items() if aligned and each in self.of and self.last[each] == time]
        for array in step.makes:
            if not array.stored or array.same_as is not None:
                continue
            size = self.size(array)
            taken = next((each for each in free if each.bytes == size and size), None)
            if taken is None:
                # Where a loop stacks what its trips make, zeros are stored before anything runs.
                self.add(array, -1 if array.form == STACK else time)
            else:
                free.remove(taken)
                taken.last = self.last.get(array, time)
                taken.arrays.append(array)
                self.of[array] = taken

    def host(self) -> None:
        """Puts buffers, the largest first, into those of results, before these are made."""
        end = len(self.steps)
        made = ((array.bytes, time) for time, step in enumerate(self.steps) for array in step.makes if array.is_result)
        rooms = [(size, [(time, end)]) for size, time in sorted(made, reverse=True)]
        for buffer in sorted(self.buffers, key=lambda each: -each.bytes):
            for tried, (size, busy) in enumerate(rooms):
                if not buffer.bytes or size < buffer.bytes or tried == MOST_ROOMS:
                    break
                at = bisect(busy, (buffer.first,))
                # The times in which a room is taken do not overlap, so only those before and after this one can be in the way.
                if (at == 0 or busy[at - 1][1] < buffer.first) and (at == len(busy) or busy[at][0] > buffer.last):
                    busy.insert(at, (buffer.first, buffer.last))
                    buffer.hosted = True
                    break

    def peak(self) -> Peak:
        """The most bytes at one time, with those inside of loops and branches."""
        best, at = -1, -1
        for time, stored in enumerate(over_steps(self.own(), len(self.steps)), start=-1):
            if (now := stored + (self.inner[time].bytes if time in self.inner else 0)) > best:
                best, at = now, time
        inner = self.inner.get(at, Peak(0))
        alive = [buffer for buffer in self.own() if buffer.first <= at <= buffer.last and buffer.bytes]
        arrays = [_at(buffer, at, self) for buffer in alive]
        step = inner.step or (self.steps[at] if at >= 0 else None)
        return Peak(best, step, (*arrays, *inner.arrays))

    def own(self) -> Iterator[Buffer]:
        return (buffer for buffer in self.buffers if not buffer.hosted)


STACK = "stacked"
"""The form of what a loop returns of all its trips."""
MOST_ROOMS = 64
"""The most results in whose buffers room for an array is looked for."""


def peak(body: Body, is_main: bool = True) -> Peak:
    """The most bytes that the steps of a body store at one time."""
    return _Timeline(body, is_main).peak()


def profile(body: Body) -> tuple[Peak, Profile]:
    """The most bytes that the program stores at one time, and what it stores while each of its steps runs."""
    line = _Timeline(body, True)
    return line.peak(), _profile(line)


def _profile(line: _Timeline) -> Profile:
    body = line.body
    buffers = tuple(buffer for buffer in line.own() if buffer.bytes)
    inside = {time: _largest(step.bodies) for time, step in enumerate(line.steps) if step.bodies}
    counted = 0 if line.is_main else sum(each.bytes for each in _counted(body))
    return Profile(tuple(line.steps), buffers, inside, body.region, counted)


def _largest(bodies: Sequence[Body]) -> Profile:
    """Of the regions of a loop or a `cond` the one that stores the most; the later one of equals, which is a loop's body."""
    return _profile(_Timeline(max(reversed(bodies), key=lambda each: _beyond(each).bytes), False))


def over_steps(buffers: Iterable[Buffer], steps: int) -> list[int]:
    """The bytes of buffers before the first step, then while each step runs."""
    change = [0] * (steps + 3)
    for buffer in buffers:
        change[buffer.first + 1] += buffer.bytes
        change[min(buffer.last, steps) + 2] -= buffer.bytes
    return list(accumulate(change[: steps + 1]))


def _inside(step: Step) -> Peak:
    """What a loop or a `cond` stores while it runs, beyond its carries and its results."""
    found = [_beyond(body) for body in step.bodies]
    return max(found, key=lambda each: each.bytes, default=Peak(0))


def _beyond(body: Body) -> Peak:
    """The peak of a region without what the step around it counts."""
    inside, counted = peak(body, is_main=False), _counted(body)
    arrays = tuple(each for each in inside.arrays if each not in counted)
    return Peak(inside.bytes - sum(each.bytes for each in counted), inside.step, arrays)


def _counted(body: Body) -> list[LocalArray]:
    """What the step around a region counts: a loop's carries, and what a branch returns."""
    return body.carries if body.is_loop else [each for each in dict.fromkeys(a.origin for a in body.results) if not each.given]


def _at(buffer: Buffer, time: int, line: _Timeline) -> LocalArray:
    """The array that a buffer has at a time: the last one that is made by then."""
    return next((each for each in buffer.arrays if line.last.get(each, time) >= time), buffer.arrays[-1])
