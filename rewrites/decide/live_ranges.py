"""The arrays of one device, and from when to when each is stored.

They are found on the walk that lowering takes (`walk`), in the same order. An array is stored from the step that makes it
to the last step that reads it. One rule says which are never stored: XLA makes the result of a map again in each of its
readers, unless there are several and it is computed from several stored arrays. A map is an op that computes each element
from few others.

%h = dot %x %w; %r = all_reduce %h; %t = tanh %r; %y = dot %t %v
    -->   h is stored from step 0 to 1, r from step 1 to 3, t never, y from step 3
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from ...dialects.definitions.syntax_tree import Definition, Otherwise, Read, nodes
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place, in_time
from ..program.program import Control, Node, ValueId
from ..redistribute.kinds.folds import Fold, still_pending
from ..redistribute.kinds.local import EachTrip
from .decide import Decisions, Move
from .placements import Placements, boundary
from .walk import Walk


@dataclass(slots=True, eq=False)
class LocalArray:
    """One array of one device: a value in its own layout, or in the one that the last step of a move leaves.

    `form` is the kind of that step, such as `all_gather`, or `carry` and `stack` over a loop; "" for a value as its op
    makes it. The array is stored from step `first` to step `last`, -1 for before the first one. `given` arrays have a
    buffer elsewhere: the program's arguments and results, and what a region reads from outside. `behind` has the stored
    arrays from which a map computes it: two of them if there are more. `aligned`: each element is computed from those at
    its own index. `loops` are those of which each trip has an array of its own.
    """

    bytes: int
    value: ValueId
    form: str = ""
    given: bool = False
    first: int = -1
    last: int = -1
    readers: int = 0
    stored: bool = True
    behind: tuple[LocalArray, ...] = ()
    aligned: bool = False
    loops: tuple[Place, ...] = ()


class Traits(NamedTuple):
    """How XLA treats an op. `maps`: its readers can make its results again; `in_place`: it can overwrite its operands."""

    maps: bool
    in_place: bool = False
    stores_reads: bool = False
    """Whether its operands are stored for it: it is a collective or a loop."""
    at_once: bool = False
    """Whether it takes its operand where that is made: each trip adds it to a carry, or stores it for later."""


@dataclass(slots=True, eq=False)
class MemoryStep:
    """An op, a step of a move, or a loop. `node` is the op's number, -1 for a move; it can overwrite the arrays in `takes`."""

    traits: Traits
    name: str
    reads: Sequence[LocalArray]
    makes: Sequence[LocalArray]
    node: int = -1
    takes: Sequence[LocalArray] = ()
    bodies: Sequence[LiveRanges] = ()


class Peak(NamedTuple):
    """The most bytes that are stored at one time, the step then, and the arrays. `step` is None before the first step."""

    bytes: int
    step: MemoryStep | None = None
    arrays: tuple[LocalArray, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveRanges:
    """The steps of the program or of one region, and the arrays that they store.

    The program's arguments and results are left out. `inside` has for each loop one of its trips, and for each `cond` the
    branch that stores the most; `region` is the number of that region in the program. `counted` bytes are those that the step
    around a region counts already: of a loop's carries, or of a branch's results. `peak` leaves them out.
    """

    steps: Sequence[MemoryStep]
    arrays: Sequence[LocalArray]
    inside: Mapping[int, LiveRanges]
    peak: Peak
    counted: int
    region: int

    def stored(self) -> list[int]:
        """The bytes before the first step, then the bytes while each step runs, without those inside of loops and branches."""
        return [each - self.counted for each in over_steps(self.arrays, len(self.steps))]


def live_ranges(decisions: Decisions, sizes: Iterable[int]) -> LiveRanges:
    """The steps of a plan's program, and the arrays that one device stores while they run.

    `sizes` are the bytes of each of its arguments.
    """
    return Ranges(decisions).main(sizes)


def bytes_of_ends(placements: Placements) -> tuple[list[int], list[int]]:
    """The bytes of each argument of a program, and of each result, on one device."""
    program = placements.program
    arguments, results = (
        [placements.local_bytes(value, boundary(placements, value)) for value in values]
        for values in (program.arguments, program.returned)
    )
    return arguments, results


def over_steps(arrays: Iterable[LocalArray], steps: int) -> list[int]:
    """The bytes of arrays before the first step, then while each step runs."""
    change = [0] * (steps + 3)
    for array in arrays:
        change[array.first + 1] += array.bytes
        change[array.last + 2] -= array.bytes
    return list(accumulate(change[: steps + 1]))


@cache
def traits(definition: Definition) -> Traits:
    """How XLA treats an op of this definition.

    ```
    out[i..] = lhs[i..] + rhs[i..]             maps, in place
    out[j, i] = src[i, j]                      maps, in place: XLA stores an array in any order of its dims
    out[v..] = ... update[w..] else src[v..]   in place: other elements keep the operand's values
    ```
    """
    target, body, guards = definition.targets[0], definition.body, definition.guards
    ends = (each.default for each in nodes(body) if isinstance(each, Otherwise))
    keeps = any(isinstance(each, Read) and each.dims == target.dims for each in ends)
    writes = keeps or not all(map(definition.looks_up, guards))
    maps = definition.maps and not writes and not any(each.start.dims for each in guards) and definition.name not in KEPT
    return Traits(maps, writes or definition.is_elementwise or (maps and definition.moves))


KEPT = frozenset(["stored", "optimization_barrier"])
"""Ops that keep their operands from being made again."""
STORES_READS, SLICE = Traits(False, stores_reads=True), Traits(True)
"""What is no op: a collective or a loop; a slice."""


class Ranges(Walk[LocalArray]):
    """What stands for a value is its array on one device."""

    def __init__(self, decisions: Decisions) -> None:
        super().__init__(decisions)
        self.has_loops, self.orders = self.placements.table.has_loops, decisions.orders()
        self.steps: list[MemoryStep] = []
        self.fetched: list[LocalArray] = []
        self.fetching: list[LocalArray] = []
        """What the trip before has gathered for this one, and what this one gathers for the next."""
        self.known: dict[int, tuple[Traits, Sequence[int]]] = {}
        """The traits of an op and the bytes of its results, by its placement, which ops of one signature share."""

    def main(self, sizes: Iterable[int]) -> LiveRanges:
        for value, size in zip(self.program.arguments, sizes, strict=True):
            self.define(value, LocalArray(size, value, given=True))
        self.body(0)
        results = self.returned()
        for result in results:
            result.given = True
        return _settled(self.steps, results)

    def array(self, value: ValueId, layout: Layout, form: str = "", within: Iterable[Place] = ()) -> LocalArray:
        """The array of a value in a layout, of the trips of these loops, and of those on which it lies."""
        loops = in_time((*layout.named, *within)) if self.has_loops else ()
        return LocalArray(self.placements.local_bytes(value, layout), value, form, loops=loops)

    def made(self, value: ValueId, layout: Layout) -> LocalArray:
        """The array of a value as it is made, with the sums that are pending in it."""
        return self.array(value, layout, within=(each.axis for each in self.placements.made(value)))

    def add(self, step: MemoryStep) -> None:
        self.steps.append(step)
        reads = step.reads
        for array in reads if len(reads) < 2 else {*reads}:
            array.readers += 1

    def moves(self, moves: Sequence[Move], starts: Sequence[LocalArray]) -> Iterable[LocalArray]:
        return map(self.settled, moves, starts)

    def settled(self, move: Move, made: LocalArray) -> LocalArray:
        if move.trip_ahead is None:
            return self.stepped(move, made)
        self.fetched.append(fetched := self.array(move.value, move.target, move.path.steps[-1].kind))
        return fetched

    def prefetch(self, move: Move) -> None:
        self.fetching.append(self.stepped(move, self.values[move.value]))

    def stepped(self, move: Move, made: LocalArray) -> LocalArray:
        pending = move.pending
        for step in move.path.steps:
            pending = still_pending(step, pending)
            within = *(each.axis for each in pending), *(step.axes if isinstance(step, EachTrip) else step.loops)
            goes_on = step.order != 0 and step.order == self.orders[step.axes[0], move.region]
            of_trips = step.is_in_time and step.communicates and not goes_on
            form = step.kind if not of_trips else "carry" if isinstance(step, Fold) else "stack"
            after = step.after
            if of_trips and step.order:
                # All trips store it, and each takes its own.
                after = Layout.of(after.global_shape, [each for each in after.factors if each[1].place not in step.axes])
            start, made = made, self.array(move.value, after, form, within)
            its = SLICE if not step.communicates else STORES_READS._replace(at_once=of_trips)
            self.add(MemoryStep(its, form, [start], [made]))
            if after is not step.after:
                start, made = made, self.array(move.value, step.after, "", within)
                self.add(MemoryStep(SLICE, "", [start], [made]))
        return made

    def op(self, nodes: Sequence[Node]) -> None:
        # Most ops read and make values that do not move: each of these is one look into a table.
        homes, values = self.decisions.homes, self.values
        for node in nodes:
            reads = self.reads(node) if node.number in self.moving else [values[value] for value in node.operands]
            for array in self.ran(node, reads):
                if array.value in homes:
                    self.define(array.value, array)
                else:
                    values[array.value] = array

    def ran(self, node: Node, reads: Sequence[LocalArray]) -> Sequence[LocalArray]:
        """The arrays that an op makes when it reads these."""
        number = node.number
        placed = self.placements.nodes[number]
        found = self.known.get(id(placed))
        if found is None:
            sizes = [*map(self.placements.local_bytes, node.results, placed.produced)]
            found = self.known[id(placed)] = traits(node.signature.definition), sizes
        its, sizes = found
        makes = [*map(self.made, node.results, placed.produced)] if self.has_loops else [*map(LocalArray, sizes, node.results)]
        self.add(MemoryStep(its, node.op_name, reads, makes, number, reads if its.in_place else ()))
        return makes

    def control(self, control: Control) -> None:
        reads = [self.read(node.operands[0], node.number, 0) for node in control.enters]
        entered = {value: (node, array) for node, array in zip(control.enters, reads, strict=True) for value in node.results}
        bodies = [self.inner(control, position, entered) for position in range(len(control.regions))]
        makes = [self.made(made.results[0], self.placements.nodes[made.number].produced[0]) for made, _ in control.leaves]
        carries = [array for node, array in zip(control.enters, reads, strict=True) if node.op_name == "carry"]
        self.add(MemoryStep(STORES_READS, control.op.name, reads, makes, takes=carries, bodies=bodies))
        for (_, node), array in zip(control.leaves, makes, strict=True):
            self.leave(node, array)

    def inner(self, control: Control, position: int, entered: dict[ValueId, tuple[Node, LocalArray]]) -> LiveRanges:
        """One region: what enters it, its steps, and what it yields. What trips collect is stored outside of the loop."""
        outer, self.steps, self.fetched, self.fetching = (self.steps, self.fetched, self.fetching), [], [], []
        carries = list[LocalArray]()
        for argument in control.op.regions[position].block.args:
            value = self.program.numbers[argument]
            node, outside = entered[value]
            array = self.made(value, self.placements.nodes[node.number].produced[node.results.index(value)])
            if node.op_name == "carry" or (node.op_name == "enter" and array.bytes == outside.bytes):
                array.given = node.op_name != "carry"
                carries += [] if array.given else [array]
            else:
                self.add(MemoryStep(SLICE, node.op_name, [LocalArray(0, node.operands[0], given=True)], [array]))
            self.define(value, array)
        self.body(control.regions[position])
        ends = [(node, self.read(node.operands[at], node.number, at)) for node, at in control.yields[position]]
        for node, array in ends:
            if node.op_name == "collect":
                self.add(MemoryStep(SLICE, node.op_name, [array], []))
        results = [array for node, array in ends if node.op_name != "collect"]
        counted = [each for each in results if not each.given] if control.op.name == "lax.cond" else carries
        found = self.steps, [*results, *self.fetching], [*carries, *self.fetched]
        self.steps, self.fetched, self.fetching = outer
        return _settled(*found, counted, control.regions[position])


def _settled(
    steps: Sequence[MemoryStep],
    results: Sequence[LocalArray],
    carries: Sequence[LocalArray] = (),
    counted: Sequence[LocalArray] = (),
    region: int = 0,
) -> LiveRanges:
    """Decides which arrays of a body are stored, from when to when, and what is the most at one time, inside of loops too."""
    _store(steps, results)
    _extend(steps, results)
    _overwrite(steps)
    _span(steps)
    made = [array for step in steps for array in step.makes if array.stored and not array.given and array.bytes]
    # Of regions that store the same, the later one, which is a loop's body.
    inside = {
        time: max(reversed(step.bodies), key=lambda each: each.peak.bytes) for time, step in enumerate(steps) if step.bodies
    }
    arrays, outer = [*carries, *made], dict.fromkeys(counted)
    stored = over_steps(arrays, len(steps))
    for time, body in inside.items():
        stored[time + 1] += max(body.peak.bytes, 0)
    most = max(stored)
    at = stored.index(most) - 1
    inner = inside[at].peak if at in inside else Peak(0)
    own = (array for array in arrays if array.first <= at <= array.last and array not in outer)
    step, around = inner.step or (steps[at] if at >= 0 else None), sum(array.bytes for array in outer)
    return LiveRanges(steps, arrays, inside, Peak(most - around, step, (*own, *inner.arrays)), around, region)


def _store(steps: Sequence[MemoryStep], results: Sequence[LocalArray]) -> None:
    """Decides which arrays are stored. What a collective or a loop reads is stored, and what leaves a body."""
    needed = {array for step in steps if step.traits.stores_reads for array in step.reads}.union(results)
    for step in steps:
        its, reads = step.traits, step.reads
        if its.maps:
            aligned = its.in_place
            for read in reads if aligned else ():
                aligned = aligned and (read.stored or read.aligned or not read.behind)
            for array in step.makes:
                array.aligned = aligned
                array.behind = behind = _behind(reads, array.bytes // SMALLER)
                array.stored = array in needed or (array.readers > 1 and len(behind) > 1)


SMALLER = 8
"""An array that is so many times smaller than what is computed from it is repeated there, and takes little to keep."""


def _behind(reads: Sequence[LocalArray], least: int) -> tuple[LocalArray, ...]:
    """The stored arrays of that many bytes from which operands are computed: two of them if there are more."""
    found: tuple[LocalArray, ...] = ()
    for read in reads:
        for each in (read,) if read.stored else read.behind:
            if each.bytes >= least and each not in found:
                found += (each,)
                if len(found) == 2:
                    return found
    return found


def _extend(steps: Sequence[MemoryStep], results: Sequence[LocalArray]) -> None:
    """Finds the first and the last step of each array. What an array is made of is read where that array is made again."""
    for result in results:
        result.last = len(steps)
    time = len(steps)
    for step in reversed(steps):
        time -= 1
        until = time
        for array in step.makes:
            array.first = time
            if array.last < time:
                array.last = time
            elif array.last > until and not array.stored:
                until = array.last
        for array in step.reads if not step.traits.at_once else ():
            if array.last < until:
                array.last = until


def _overwrite(steps: Sequence[MemoryStep]) -> None:
    """Lets results take the place of operands: an array that a step overwrites is not stored any more while the step runs."""
    for time, step in enumerate(steps):
        for made in step.makes if step.takes else ():
            if made.stored and not made.given:
                read = (
                    each
                    for array in step.takes
                    for each in ((array,) if array.stored else array.behind if array.aligned else ())
                )
                ends = (each for each in read if each.last == time and each.bytes == made.bytes and not each.given)
                if (taken := next(ends, None)) is not None:
                    taken.last = time - 1


def _span(steps: Sequence[MemoryStep]) -> None:
    """Stores what all trips of a loop read, and what they add up, from the first step that runs in the loop to the last one.

    Loops over one range that run one after another count as one.
    """
    spans, ran = dict[Place, tuple[int, int]](), dict[int, dict[Place, None]]()
    for time, step in enumerate(steps):
        for array in (*step.reads, *step.makes):
            if array.loops:
                ran.setdefault(time, {}).update(dict.fromkeys(array.loops))
    for time, loops in ran.items():
        spans |= {loop: (spans.get(loop, (time,))[0], time) for loop in loops}
    for step, loops in ((steps[time], loops) for time, loops in ran.items()):
        for loop, array in ((loop, array) for loop in loops for array in (*step.reads, *step.makes)):
            if loop not in array.loops:
                first, last = spans[loop]
                array.first = min(array.first, first)
                array.last = max(array.last, last if array in step.reads else 0)
