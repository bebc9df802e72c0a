"""In which loop an op runs, where one loop has to end before the next begins.

A fold over a loop is known only after the loop, so what is computed from it in trips is in a later loop. An op runs in the last
loop that needs it. If an earlier one needs it too, its value is stored there for each trip, or computed again, whichever takes
less time.

    a masked mean: %n = fold %mask; %l = ... %x; fold (mul %l, (div 1, %n))
        -->   loop 1: fold %mask          loop 2: %l, and the rest
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from xdsl.ir import Operation, SSAValue

from ...dialects import spmd
from ...dialects.array import Barrier, Coordinate
from ...dialects.definitions.flops import flops
from ...dialects.lax import CondOp, LaxOp, ScanOp
from ...dialects.op_text import array_types
from ...dialects.ranges.algebra import Loop
from ...dialects.types import ArrayType
from ..emit import Emitter, type_at

FLOPS_PER_BYTE = 200
"""The flops in the time in which a chip reads a byte of its memory: 155 on a v3, 243 on a v5e, 295 on an H100."""

Value = Hashable
"""A value of the block that is scheduled, or a `Stacked` one."""


class Stacked(NamedTuple):
    """What all trips have of a value, as one array with a row for each; or, with `of`, what is left of it after them."""

    value: Value
    of: str = "all"


@dataclass(eq=False, slots=True, kw_only=True)
class Item:
    """Something to run: in trips, or outside of them."""

    reads: Sequence[Value]
    makes: Sequence[Value]
    inside: bool = False


@dataclass(eq=False, slots=True)
class RunOp(Item):
    """An op of the block. One that is `fixed` is computed in each loop that needs it: its value differs among them."""

    op: Operation
    fixed: bool = False


@dataclass(eq=False, slots=True)
class Fold(Item):
    """Folds what all trips have of a value: a carry."""

    monoid: str


@dataclass(eq=False, slots=True)
class Stack(Item):
    """Stores what each trip has of a value."""


@dataclass(eq=False, slots=True, kw_only=True)
class Carried(Item):
    """What goes on from trip to trip: each reads its part, and has the fold of those of the trips before it."""

    inside: bool = True
    monoid: str

    def reference(self, emit: Emitter, value: SSAValue) -> SSAValue:
        """The carry in the form in which it is used."""
        return value

    def shown(self, emit: Emitter, before: SSAValue, after: SSAValue, type: ArrayType) -> SSAValue:
        """What a trip has of the carry before it and after it."""
        return emit.cast(before, type.dtype)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value of trips that several loops over one range need: the first of them stores it, or each of them computes it.

    `bytes` are those of all trips, and `flops` what all trips compute if it is computed once more; None if that is not known.
    """

    loop: Loop
    value: Value
    is_stored: bool
    bytes: int
    flops: int | None
    others: int
    """How many loops need it beside the first one."""


@dataclass(slots=True)
class Schedule:
    """Loops are numbered from the last one, 0. An item outside of trips runs before the loop whose number is one less."""

    items: Sequence[Item]
    varying: Set[Value]
    """The values that each trip has."""
    given: Set[Value]
    """Values of trips that come as stacks."""
    returns: Sequence[Value]
    due: dict[Value, int] = field(default_factory=dict[Value, int])
    """Values outside of trips -> the number of the loop after which each has to be there."""
    runs: dict[Item, frozenset[int]] = field(default_factory=dict[Item, frozenset[int]])
    """Items in trips -> the loops in which each runs; a fold or a stack in one."""
    stored: dict[Value, int] = field(default_factory=dict[Value, int])
    """Values of trips -> the loop that stores each."""
    again: dict[RunOp, frozenset[int]] = field(default_factory=dict[RunOp, frozenset[int]])
    """Items that several loops need -> these, whether the first of them stores what they make or each computes it."""
    _uses: dict[Value, set[int]] = field(default_factory=dict[Value, set[int]])

    def __post_init__(self) -> None:
        for value in self.returns:
            self._need(value, 0)
        for item in reversed(self.items):
            if isinstance(item, Fold | Stack):
                self._end(item)
            elif item.inside:
                self._repeat(item)
            else:
                last = max((self.due.get(each, 0) for each in item.makes), default=0)
                for each in item.reads:
                    self._need(each, last)

    @property
    def loops(self) -> int:
        """The number of loops."""
        return 1 + max((loop for loops in self.runs.values() for loop in loops), default=-1)

    @property
    def work(self) -> int:
        """The time of one trip of all loops, in flops: what it computes, and what it stores instead of computing it again."""
        computed = sum(len(loops) * (flops_of(item.op) or 0) for item, loops in self.runs.items() if isinstance(item, RunOp))
        stacks = {item.reads[0] for item in self.runs if isinstance(item, Stack)}
        stored = (cast(SSAValue, value) for value in self.stored if value not in stacks)
        return computed + 2 * FLOPS_PER_BYTE * sum(type_at(value).nbytes for value in stored)

    def crossings(self, loop: Loop) -> Iterator[Crossing]:
        """The values that several loops need."""
        for item, needed in reversed(self.again.items()):
            op, work = item.op, flops_of(item.op)
            for value in item.makes:
                stored = value in self.stored
                if isinstance(op, LaxOp) and (stored or len(self.runs[item]) > 1):
                    size, again = loop.size * type_at(cast(SSAValue, value)).nbytes, None if work is None else loop.size * work
                    yield Crossing(loop, value, stored, size, again, len(needed) - 1)

    def _need(self, value: Value, loop: int) -> None:
        """A value outside of trips has to be there after a loop."""
        self.due[value] = max(self.due.get(value, 0), loop)

    def _read(self, values: Iterable[Value], loop: int) -> None:
        """The trips of a loop read these values."""
        for value in values:
            if value not in self.varying:
                self._need(value, loop + 1)
            elif value in self.given:
                self._need(Stacked(value), loop + 1)
            else:
                self._uses.setdefault(value, set()).add(loop)

    def _end(self, item: Fold | Stack) -> None:
        """A fold or a stack is in the last loop after which it is early enough."""
        (made,) = item.makes
        if made not in self.due:
            return
        self.runs[item] = frozenset({self.due[made]})
        if isinstance(item, Stack):
            self.stored[item.reads[0]] = self.due[made]
        self._read(item.reads, self.due[made])

    def _repeat(self, item: Item) -> None:
        """An op in trips runs in each loop that needs it, unless the first of them stores it for the others."""
        uses, stored = self._uses, self.stored
        read = {value: uses[value] for value in item.makes if value in uses}
        for value in read.keys() & stored.keys() if stored else ():
            # Later loops read what is stored in any case.
            read[value] = {loop for loop in read[value] if loop >= stored[value]}
        loops = set[int]().union(*read.values())
        if len(loops) > 1 and isinstance(item, RunOp) and not item.fixed:
            self.again[item] = frozenset(loops)
            if not is_cheap(item):
                first = max(loops)
                self.stored |= {value: first for value, loops in read.items() if loops - {first}}
                loops = {first}
        if loops:
            self.runs[item] = frozenset(loops)
            for loop in loops:
                self._read(item.reads, loop)


def is_cheap(item: Item) -> bool:
    """Whether to compute an op again takes less time than to store its results, and to read them."""
    op = cast(RunOp, item).op
    if not isinstance(op, LaxOp):
        return isinstance(op, spmd.SliceOp | spmd.PickOp | Coordinate | Barrier)
    return not op.regions and _is_little(op)


def _is_little(op: LaxOp) -> bool:
    work = flops_of(op)
    return work is not None and work <= 2 * FLOPS_PER_BYTE * sum(each.nbytes for each in array_types(op.results))


def flops_of(op: Operation) -> int | None:
    """The flops of one run of an op, with those that are known of what is in its regions; None if its own are not known."""
    if not op.regions:
        return _own_flops(op) if isinstance(op, LaxOp) else 0
    regions = [sum(flops_of(each) or 0 for each in region.block.ops) for region in op.regions]
    return op.length * regions[0] if isinstance(op, ScanOp) else max(regions) if isinstance(op, CondOp) else sum(regions)


def _own_flops(op: LaxOp) -> int | None:
    ins, outs = array_types(op.operands), array_types(op.results)
    return flops(op.primitive(), op.params, tuple(each.shape for each in ins), tuple(each.shape for each in outs))


def spreads(op: Operation) -> bool:
    """Whether an op makes more than it reads, by little arithmetic: to make it in each trip takes less than to store it."""
    return (
        isinstance(op, LaxOp)
        and not op.regions
        and sum(each.nbytes for each in array_types(op.results)) > sum(each.nbytes for each in array_types(op.operands))
        and _is_little(op)
    )
