"""From when to when each array is stored, which arrays share a buffer, and the most bytes that are stored at one time.

XLA:CPU runs each step as soon as what it reads is stored, first come, first served. So weights are transposed early, and the
gradient of a weight can wait for that of an activation.

    a = f(x); b = g(a); c = h(x); d = k(b, c)   -->   a, c, b, d

a = dot; b = tanh a; c = dot b       a and b share a buffer, because b takes the place of a
a = dot; b = dot a; ...; r = dot     a is in the buffer of the result `r` of the program, which is free until then
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from .fusion import Reads, StoredReads
from .local_arrays import LocalArray, MemoryStep, RegionSteps


@dataclass(slots=True, eq=False)
class Buffer:
    """Memory that holds one array after another, from the step `first` to the step `last`."""

    bytes: int
    first: int
    last: int
    arrays: list[LocalArray]
    hosted: bool = False
    """Whether it lies in the buffer of a result."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that a body stores at one time, not counting the program's results; the step at that time, and the arrays.

    `step` is None if that is before the first step.
    """

    bytes: int
    step: MemoryStep | None = None
    arrays: tuple[LocalArray, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """The arrays that a body stores over time, without the results of the program.

    `steps` are in the order in which they run. Each of `buffers` has its first and last step by number, -1 for before the first
    one. `inside` has for each loop one of its trips, and for each `cond` the branch that stores the most; `region` is the
    number of that region in the program. `counted` bytes of a region's buffers are counted at the step around the region
    already.
    """

    steps: tuple[MemoryStep, ...]
    buffers: tuple[Buffer, ...]
    inside: dict[int, Profile]
    region: int = 0
    counted: int = 0

    def stored(self) -> list[int]:
        """The bytes before the first step, then the bytes while each step runs, without the `counted` ones.

        Bytes inside of loops and branches are left out.
        """
        return [each - self.counted for each in over_steps(self.buffers, len(self.steps))]


class _Timeline:
    """The buffers of a body. `is_main`: it is the program, whose results have buffers of their own.

    `inside` maps the number of a step that is a loop or a `cond` to the timelines of its regions; `inner` has the highest peak
    of these. `peak` is the most bytes at one time, with `inner` included and `counted` left out. `counted` are arrays that the
    step around a region counts already: a loop's carries, or a branch's results.
    """

    def __init__(self, body: RegionSteps, is_main: bool) -> None:
        self.body, self.is_main = body, is_main
        sources = StoredReads(body.makers)
        self.steps, reads = in_order(body, sources)
        self.buffers, self.of = list[Buffer](), dict[LocalArray, Buffer]()
        self.last = {array: time for time, read in enumerate(reads) for array in read}
        self.last.update((array, len(self.steps)) for result in body.results for array in sources.of(result, False))
        self.inside = {
            time: [_Timeline(each, False) for each in step.bodies] for time, step in enumerate(self.steps) if step.bodies
        }
        highest = {time: max((each.peak for each in lines), key=_bytes) for time, lines in self.inside.items()}
        self.inner = {time: inner for time, inner in highest.items() if inner.bytes > 0}
        for carry in body.carries:
            self.add(carry, -1)
        for time, (step, read) in enumerate(zip(self.steps, reads, strict=True)):
            self.step(step, read, time)
        if is_main:
            self.host()
        results = dict.fromkeys(each.origin for each in body.results)
        self.counted = [] if is_main else body.carries if body.is_loop else [each for each in results if not each.given]
        self.peak = self.highest()

    def add(self, array: LocalArray, first: int) -> None:
        buffer = Buffer(self.size(array), first, self.last.get(array, first), [array])
        self.of[array] = buffer
        self.buffers.append(buffer)

    def size(self, array: LocalArray) -> int:
        """The bytes that an array adds: 0 for a result of the program."""
        return 0 if self.is_main and array.is_result else array.bytes

    def step(self, step: MemoryStep, reads: Reads, time: int) -> None:
        """Allocates a step's results, reusing buffers of operands that are read last here."""
        of, last = self.of, self.last
        free = [of[each] for each, aligned in reads.items() if aligned and last[each] == time and each in of]
        for array in step.makes:
            if not array.stored or array.same_as is not None:
                continue
            size = self.size(array)
            taken = next((each for each in free if each.bytes == size and size), None)
            if taken is None:
                # A loop stacks the results of its trips into zeros, which are stored before anything runs.
                self.add(array, -1 if array.form == STACK else time)
            else:
                free.remove(taken)
                taken.last = self.last.get(array, time)
                taken.arrays.append(array)
                self.of[array] = taken

    def host(self) -> None:
        """Puts buffers, the largest first, into the buffers of results, before these are computed."""
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

    def highest(self) -> Peak:
        best, at = -1, -1
        for time, stored in enumerate(over_steps(self.own(), len(self.steps)), start=-1):
            if (now := stored + (self.inner[time].bytes if time in self.inner else 0)) > best:
                best, at = now, time
        inner = self.inner.get(at, Peak(0))
        alive = (buffer.arrays for buffer in self.own() if buffer.first <= at <= buffer.last and buffer.bytes)
        # Of each buffer, the array that it holds at that time.
        arrays = (next((each for each in some if self.last.get(each, at) >= at), some[-1]) for some in alive)
        step = inner.step or (self.steps[at] if at >= 0 else None)
        counted = sum(map(_bytes, self.counted))
        return Peak(best - counted, step, tuple(each for each in (*arrays, *inner.arrays) if each not in self.counted))

    def profile(self) -> Profile:
        # Of regions that store the same, the later one, which is a loop's body.
        largest = {time: max(reversed(lines), key=lambda each: each.peak.bytes) for time, lines in self.inside.items()}
        return Profile(
            tuple(self.steps),
            tuple(buffer for buffer in self.own() if buffer.bytes),
            {time: line.profile() for time, line in largest.items()},
            self.body.region,
            sum(map(_bytes, self.counted)),
        )

    def own(self) -> Iterator[Buffer]:
        return (buffer for buffer in self.buffers if not buffer.hosted)


def _bytes(each: LocalArray | Peak) -> int:
    return each.bytes


STACK = "stacked"
"""The form of an array with the results of all trips of a loop."""
MOST_ROOMS = 64
"""The most results whose buffers are tried for an array."""


def peak(body: RegionSteps) -> Peak:
    """The most bytes that the steps of the program store at one time."""
    return _Timeline(body, True).peak


def profile(body: RegionSteps) -> tuple[Peak, Profile]:
    """The most bytes that the program stores at one time, and what it stores while each of its steps runs."""
    line = _Timeline(body, True)
    return line.peak, line.profile()


def over_steps(buffers: Iterable[Buffer], steps: int) -> list[int]:
    """The bytes of buffers before the first step, then while each step runs."""
    change = [0] * (steps + 3)
    for buffer in buffers:
        change[buffer.first + 1] += buffer.bytes
        change[min(buffer.last, steps) + 2] -= buffer.bytes
    return list(accumulate(change[: steps + 1]))


def in_order(body: RegionSteps, sources: StoredReads) -> tuple[list[MemoryStep], list[Reads]]:
    """The stored steps in the order in which they run, and the stored arrays that each reads."""
    steps = [step for step in body.steps if step.is_stored]
    reads = {step: sources.read(step) for step in steps}
    makers = {array: step for step in steps for array in step.makes}
    waits: dict[MemoryStep, int] = {}
    users: dict[MemoryStep, list[MemoryStep]] = {}
    for step, read in reads.items():
        needs = {makers[array] for array in read if array in makers}
        waits[step] = len(needs)
        for each in needs:
            users.setdefault(each, []).append(step)
    for each in users.values():
        if len(each) > 1:
            # XLA adds the transposed copies of operands later, so they come after the other uses.
            each.sort(key=lambda step: step.name == TRANSPOSED)
    ready = [step for step in steps if not waits[step]]
    for step in ready:
        for user in users.get(step, ()):
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    assert len(ready) == len(steps), "a step reads only what an earlier one makes"
    return ready, [reads[step] for step in ready]


TRANSPOSED = "transposed"
"""The name of steps that copy an operand into the order of dims that a product needs."""
