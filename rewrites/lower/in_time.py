"""From device-local code on axes and loops to code with explicit loops: each range that lies on a loop becomes a `lax.scan`.

A slice over a loop is a row of each trip, a fold a carry, a gather a stack. These say which ops run in each trip, and where one
loop has to end before the next can begin: an op that needs a fold, or a stack, runs in a later loop than what is folded. No
name of another op is read.

    %2 = spmd.slice %x dim 0 block 8 over (t:8)             %4 = lax.scan %x, %trips {length = 8, ...} {
    %3 = lax.tanh %2                                -->       ... dynamic_slice, tanh, reduce_sum, add to the carry
    %4 = spmd.all_reduce add (reduce_sum %3) over (t:8)     }

`trip_ops` has how an op over a loop is written inside a trip, and `loop_schedule` in which loop an op runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, takewhile
from operator import is_not
from typing import NamedTuple, cast

from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import spmd
from ...dialects.array import Coordinate
from ...dialects.lax import CondOp, RegionOp, ScanOp, WhileOp, YieldOp
from ...dialects.params import ParamsAttr
from ...dialects.ranges.algebra import Loop, Place, in_time, nesting
from ...dialects.types import ArrayType
from ..emit import Appending, Emitter, type_at
from .loop_schedule import Carried, Crossing, Fold, Item, RunOp, Schedule, Stack, Stacked, Value, spreads
from .rescaled_sums import Relative, Rescaled, Unscaled, waiting_for_none
from .trip_ops import LAST, accumulated, begin_fold, in_trip, on_stack, order_of
from .trip_regions import copied, is_barrier, is_within, places_of, with_number

LESS = 20
"""Sums do not wait for other folds where that leaves less than 19 parts of 20 to do."""


def run_in_time(block: Block, crossings: list[Crossing]) -> tuple[Block, Mapping[Value, SSAValue]]:
    """The block with its loops, outer ones first, and what values outside of them are now; the block itself, if it has none.

    To `crossings` it adds the values that several loops over one range need.
    """
    now = dict[Value, SSAValue]()
    for loop in sorted({*in_time(chain.from_iterable(_named(block)))}, key=nesting):
        cut = Cut(block, loop, (), crossings)
        block = cut.written()
        now = cut.outside | {old: cut.outside.get(new, new) for old, new in now.items()}
    return block, now


def _named(block: Block) -> Iterator[tuple[Place, ...]]:
    """The places that ops of a block name. Most ops name none: each is one look at its class."""
    for op in block.ops:
        if places := places_of(op):
            yield places
        for region in op.regions:
            yield from _named(region.block)


@cache
def _is_row(kind: type[Operation]) -> bool:
    return issubclass(kind, spmd.SliceOp | spmd.PickOp | Coordinate)


class Cut:
    """One block, whose ops over one loop become loops. The arguments in `stacked` have a row for each trip."""

    def __init__(self, block: Block, loop: Loop, stacked: Iterable[int], crossings: list[Crossing]) -> None:
        self.block, self.loop, self.crossings = block, loop, crossings
        self.items = list[Item]()
        self.alias: dict[SSAValue, Value] = {}
        """Values that are others, as the results of a barrier."""
        self.given = set[Value](block.args[number] for number in stacked)
        """Values of trips that come as stacks."""
        self.varying = set[Value](self.given)
        """The values that each trip has."""
        self.ends = set[Stacked]()
        """What is left of values after the loop: stacks of them, and what the last trip has."""
        self.outside = dict[Value, SSAValue]()
        """The values outside of trips, and what they are in the new block; others are themselves."""
        self.last = list[tuple[Operation, Sequence[Value]]]()
        """The last ops, with what they read: none of them is in trips, so they stay where they are."""
        *ops, end = block.ops
        self.end = end
        for op in ops:
            self.read(op)
        if block.parent is not None:
            self.not_last()
        self.returns = [self.value(each) for each in end.operands]

    # --- what runs where ---------------------------------------------------------------------------------------------

    def value(self, operand: SSAValue) -> Value:
        return self.alias.get(operand, operand)

    def not_last(self) -> None:
        """Makes items of the last ops, because another item comes after them."""
        self.items += [RunOp(reads=reads, makes=op.results, op=op) for op, reads in self.last]
        self.last.clear()

    def add(self, op: Operation, reads: Sequence[Value], makes: Sequence[Value], inside: bool) -> None:
        self.items.append(RunOp(reads=reads, makes=makes, inside=inside, op=op))
        if inside:
            self.varying.update(makes)

    def stack(self, value: Value) -> Value:
        """The stack of what the trips have of a value."""
        made = Stacked(value)
        if value not in self.given and made not in self.ends:
            self.items.append(Stack(reads=[value], makes=[made]))
            self.ends.add(made)
        return made

    def plain(self, value: Value) -> Value:
        """A value outside of trips. All trips have the same of one that no fold or stack has made so: that of the last one."""
        if value not in self.varying:
            return value
        same = Stacked(value, LAST)
        if same not in self.ends:
            self.fold(LAST, value, same)
            self.ends.add(same)
        return same

    def fold(self, monoid: str, value: Value, made: Value) -> None:
        self.items.append(Fold(reads=[value], makes=[made], monoid=monoid))

    def read(self, op: Operation) -> None:
        """Adds an op: to what runs in trips, or outside of them."""
        operands = [self.value(each) for each in op.operands] if self.alias else list[Value](op.operands)
        places, varying = places_of(op), self.varying
        varies = [each in varying for each in operands]
        inside = any(varies) or self.loop in places or (bool(places) and self.begins_in_trips(op))
        if not (inside or op.regions or is_barrier(type(op))):
            self.last.append((op, operands))
            return
        self.not_last()
        if self.loop in places and not _is_row(type(op)):
            self.across(cast(spmd.Collective, op), operands[0])
        elif is_barrier(type(op)):
            self.barrier(op, operands, [varied or self.held(op, at) for at, varied in enumerate(varies)])
        elif op.regions:
            inside = inside or is_within(op, self.loop)
            if inside and self.opens(cast(RegionOp, op)):
                self.opened(cast(RegionOp, op), operands, varies)
            else:
                self.add(op, operands, op.results, inside)
        else:
            self.add(op, operands, op.results, inside)

    def opens(self, op: RegionOp) -> bool:
        """Whether the loop runs within the regions of an op: one has to end there, or the op is an outer loop."""
        ends = any(self.loop in places_of(each) and not _is_row(type(each)) for each in op.walk())
        return ends or op.params.get("loop") is not None

    def across(self, op: spmd.Collective, operand: Value) -> None:
        """A collective over the loop: a fold, or a stack of what it then takes."""
        match op:
            case spmd.AllReduceOp() if len(op.axes) == 1:
                self.fold(op.monoid.data, operand, op.results[0])
            case spmd.AllGatherOp() if len(op.axes) == 1:
                self.add(op, [self.stack(operand)], op.results, inside=False)
            case spmd.ExscanOp() | spmd.PermuteOp() if order_of(op) == self.order:
                monoid = op.monoid.data if isinstance(op, spmd.ExscanOp) else LAST
                self.items.append(Carried(reads=[operand], makes=op.results, monoid=monoid))
                self.varying.update(op.results)
            case spmd.ExscanOp() | spmd.PermuteOp() if len(op.axes) == 1:
                self.add(op, [self.stack(operand)], [self.comes_as_stack(op.results[0])], inside=False)
            case _:
                raise NotImplementedError(f"`{op.name}` over loop `{self.loop}` and other places")

    @cached_property
    def order(self) -> int:
        """The order of the trips, 1 or -1: forwards, if anything goes on from a trip to the one behind it."""
        orders = {order_of(op) for op in self.block.ops if self.loop in places_of(op)}
        return 1 if 1 in orders or -1 not in orders else -1

    def barrier(self, op: Operation, operands: Sequence[Value], varies: Sequence[bool]) -> None:
        """A barrier in a trip orders what the trip has. What is computed before the loop does not wait for it."""
        if not any(varies):
            self.add(op, operands, op.results, inside=False)
            return
        inside = [at for at, each in enumerate(varies) if each]
        self.alias |= {op.results[at]: each for at, each in enumerate(operands) if at not in inside}
        if len(inside) > 1:
            self.add(op, [operands[at] for at in inside], [op.results[at] for at in inside], inside=True)
        else:
            self.alias[op.results[inside[0]]] = operands[inside[0]]

    def held(self, op: Operation, at: int) -> bool:
        """Whether a barrier keeps an operand in the trips: it waits for the number of the trip, or its result does so next."""
        after = (use.operation for use in op.results[at].uses)
        return self.begins(op) or any(is_barrier(type(each)) and self.begins(each) for each in after)

    def begins(self, op: Operation) -> bool:
        """Whether an op waits for the number of the trip, or of one of another loop."""
        makers = (operand.owner for operand in op.operands)
        return any(isinstance(each, Coordinate) and isinstance(each.axes[0], Loop) for each in makers)

    def begins_in_trips(self, op: Operation) -> bool:
        """Whether an op is the number of a trip of another loop, for which only what these trips have waits."""
        if not isinstance(op, Coordinate) or not isinstance(op.axes[0], Loop):
            return False
        waiting = [use.operation for use in op.out.uses]
        given = (self.value(each) for other in waiting for each in other.operands if each is not op.out)
        return all(is_barrier(type(each)) for each in waiting) and any(each in self.varying for each in given)

    def opened(self, op: RegionOp, operands: Sequence[Value], varies: Sequence[bool]) -> None:
        """An op in whose regions a loop ends: it runs outside of the loop, on stacks, and the loop in its regions."""
        opened = Opened(op, self.loop, varies, self.crossings)
        reads = [
            self.stack(value) if stacked and varied else self.plain(value)
            for value, stacked, varied in zip(operands, opened.operands, varies, strict=True)
        ]
        ends = zip(op.results, opened.results, strict=True)
        makes = [self.comes_as_stack(each) if stacked else each for each, stacked in ends]
        self.items.append(RunOpened(reads=reads, makes=makes, opened=opened))

    def comes_as_stack(self, value: SSAValue) -> Stacked:
        """Records a value of trips that is made as a stack. Returns the stack."""
        self.varying.add(value)
        self.given.add(value)
        return Stacked(value)

    # --- the new block -----------------------------------------------------------------------------------------------

    def written(self, stacked: Sequence[bool] = ()) -> Block:
        """The new block. Of the results in `stacked` it returns stacks."""
        wanted = stacked or [False] * len(self.returns)
        ends = [
            self.stack(value) if stack and value in self.varying else self.plain(value)
            for value, stack in zip(self.returns, wanted, strict=True)
        ]
        read = {old: value for op, reads in self.last for old, value in zip(op.operands, reads, strict=True)}
        schedule = self.scheduled([*ends, *read.values()])
        self.crossings += schedule.crossings(self.loop)
        writer = _Writer(self, schedule)
        block = writer.written(ends, wanted, read)
        self.outside = writer.env
        return block

    def scheduled(self, ends: Sequence[Value]) -> Schedule:
        """In which loop each item runs. Sums do not wait for other folds where that leaves less to do."""
        self.sink(ends)
        found = Schedule(self.items, self.varying, self.given, ends)
        if found.loops < 2:
            return found
        items, varying = waiting_for_none(self.items, self.varying)
        other = Schedule(items, varying, self.given, ends) if len(items) > len(self.items) else found
        if other.loops < found.loops and other.work * LESS < found.work * (LESS - 1):
            self.items, self.varying = items, varying
            return other
        return found

    def sink(self, ends: Iterable[Value]) -> None:
        """Takes an op that makes more than it reads, as an iota or a broadcast, into the trips if only they read it."""
        outside = {*ends}
        for item in reversed(self.items):
            if item.inside or isinstance(item, Fold | Stack):
                continue
            if isinstance(item, RunOp) and outside.isdisjoint(item.makes) and spreads(item.op):
                item.inside = True
                self.varying.update(item.makes)
            else:
                outside.update(item.reads)


@dataclass(eq=False, slots=True, kw_only=True)
class RunOpened(Item):
    """An op in whose regions a loop ends."""

    opened: Opened


class _Writer:
    """Writes a block whose loops are scheduled."""

    def __init__(self, cut: Cut, schedule: Schedule) -> None:
        self.cut, self.loop, self.schedule = cut, cut.loop, schedule
        old = cut.block.args
        types = [stacked_type(type_at(arg), self.loop.size) if arg in cut.varying else type_at(arg) for arg in old]
        self.block = Block(arg_types=() if cut.last else types)
        self.emit = Emitter(Appending(self.block))
        given = zip(old, old if cut.last else self.block.args, strict=True)
        self.env: dict[Value, SSAValue] = {Stacked(arg) if arg in cut.varying else arg: new for arg, new in given}

    def written(self, ends: Sequence[Value], wanted: Sequence[bool], read: Mapping[SSAValue, Value]) -> Block:
        """The new block, or the old one with the last ops that it has. `read` is what these read."""
        plain = [item for item in self.cut.items if not item.inside and not isinstance(item, Fold | Stack)]
        due = {item: max((self.schedule.due.get(each, 0) for each in item.makes), default=0) for item in plain}
        for loop in range(self.schedule.loops - 1, -1, -1):
            for item in (item for item in plain if due[item] == loop + 1):
                self.outside(item)
            self.run(loop)
        for item in (item for item in plain if due[item] == 0):
            self.outside(item)
        results = [
            self.emit.spread(self.env[value], (self.loop.size, *type_at(self.env[value]).shape), _behind(self.env[value]))
            if stack and not isinstance(value, Stacked)
            else self.env.get(value, cast(SSAValue, value))
            for value, stack in zip(ends, wanted, strict=True)
        ]
        last = self.cut.last[0][0] if self.cut.last else None
        for op in [*takewhile(lambda op: op is not last, self.cut.block.ops)]:
            op.detach()
            op.drop_all_references()
        if last is None:
            self.block.add_op(type(self.cut.end).create(operands=results))
            return self.block
        self.cut.end.operands = results
        return self.before(last, read)

    def before(self, last: Operation, read: Mapping[SSAValue, Value]) -> Block:
        """Puts what is written into the old block, before its last ops."""
        block = self.cut.block
        for old, value in read.items():
            if (new := self.env.get(value, cast(SSAValue, value))) is not old:
                old.replace_all_uses_with(new)
        for op in [*self.block.ops]:
            op.detach()
            block.insert_op_before(op, last)
        return block

    def outside(self, item: Item) -> None:
        """Writes an op that runs once."""
        operands = [self.env[each] for each in item.reads]
        if isinstance(item, RunOpened):
            results: Sequence[SSAValue] = item.opened.written(self.emit, operands)
        elif isinstance(item, Unscaled):
            results = [item.written(self.emit, self.env)]
        else:
            op = cast(RunOp, item).op
            is_over = self.loop in places_of(op)
            results = [on_stack(self.emit, op, operands[0])] if is_over else self.put(op, operands, self.block)
        self.env.update(zip(item.makes, results, strict=True))

    def put(self, op: Operation, operands: Sequence[SSAValue], block: Block) -> Sequence[SSAValue]:
        """Puts an op into a block, the op itself the first time. Returns its results."""
        if op.parent is not self.cut.block or op.regions or is_barrier(type(op)):
            op = copied(op, operands)
        else:
            op.detach()
            if any(map(is_not, operands, op.operands)):
                op.operands = operands
        block.add_op(op)
        return op.results

    def run(self, loop: int) -> None:
        """Writes one loop."""
        schedule, trips = self.schedule, self.loop.size
        inside = [item for item in self.cut.items if loop in schedule.runs.get(item, ())]
        made = {each for item in inside if item.inside for each in item.makes}
        read = dict.fromkeys(each for item in inside for each in item.reads if each not in made)
        folds = [item for item in inside if isinstance(item, Fold)]
        stores = [item.reads[0] for item in inside if isinstance(item, Stack)]
        stores += [each for each, first in schedule.stored.items() if first == loop and each not in stores]
        rows = [each for each in read if each in self.cut.varying]
        consts = [each for each in read if each not in self.cut.varying]
        stacks = [self.env[Stacked(each)] for each in rows]
        numbers = self.emit.iota((trips,), 0)
        # The carries have the types of what is folded, which the body tells.
        trip = _Trip(self, [self.env[each] for each in consts], stacks, numbers)
        trip.env |= dict(zip(consts, trip.consts, strict=True)) | dict(zip(rows, trip.rows, strict=True))
        for item in inside:
            if isinstance(item, Carried):
                trip.go_on(item)
            elif item.inside:
                trip.run(cast(RunOp, item))
        carried, *done = trip.scan(folds, [trip.env[each] for each in stores])
        for item, total in zip(folds, done, strict=False):
            self.env[item.makes[0]] = total
            if isinstance(item, Rescaled):
                reached = item.running.reference(self.emit, carried[item.running])
                self.env[Relative(item.makes[0], item.running.makes[0])] = reached
            else:
                self.env[item.makes[0]] = self.emit.cast(total, type_at(trip.env[item.reads[0]]).dtype)
        self.env.update(zip(map(Stacked, stores), done[len(folds) :], strict=True))


class _Trip:
    """The body of a loop, as a `lax.scan`."""

    def __init__(self, around: _Writer, consts: Sequence[SSAValue], stacks: Sequence[SSAValue], numbers: SSAValue) -> None:
        self.around, self.outer = around, (consts, stacks, numbers)
        rows = [_row_type(type_at(each)) for each in (*stacks, numbers)]
        self.block = Block(arg_types=[*(each.type for each in consts), *rows])
        self.emit = Emitter(Appending(self.block))
        self.consts = self.block.args[: len(consts)]
        *self.rows, self.number = self.block.args[len(consts) :]
        self.env: dict[Value, SSAValue] = {}
        self.carried: dict[Carried, _Carry] = {}

    def go_on(self, item: Carried) -> None:
        """Writes what goes on from trip to trip, and what this trip has of it."""
        part = self.env[item.reads[0]]
        start = begin_fold(self.around.emit, item.monoid, part)
        carry = self.block.insert_arg(start.type, len(self.consts) + len(self.carried))
        total = accumulated(self.emit, item.monoid, carry, part)
        before, after = (item.reference(self.emit, each) for each in (carry, total))
        self.carried[item] = _Carry(start, total, before, after)
        self.env[item.makes[0]] = item.shown(self.emit, before, after, type_at(part))

    def run(self, item: RunOp) -> None:
        """Writes an op of a trip."""
        operands = [self.env[each] for each in item.reads]
        loop, op = self.around.loop, item.op
        if loop in places_of(op):
            results: Sequence[SSAValue] = [in_trip(self.emit, op, operands, loop, self.number)]
        elif op.regions:
            made = with_number(cast(RegionOp, op), operands, loop, self.number)
            self.block.add_op(made)
            results = made.results
        else:
            results = self.around.put(op, operands, self.block)
        self.env.update(zip(item.makes, results, strict=True))

    def scan(self, folds: Sequence[Fold], stores: Sequence[SSAValue]) -> tuple[dict[Carried, SSAValue], *tuple[SSAValue, ...]]:
        """Ends the body, and writes the loop. Returns what went on from trip to trip, then the folds, then the stacks."""
        consts, stacks, numbers = self.outer
        carried = [*self.carried.values()]
        starts, totals = [each.start for each in carried], [each.total for each in carried]
        for fold in folds:
            part = self.env[fold.reads[0]]
            starts.append(begin_fold(self.around.emit, fold.monoid, part))
            carry: SSAValue = self.block.insert_arg(starts[-1].type, len(consts) + len(totals))
            if isinstance(fold, Rescaled):
                maximum = self.carried[fold.running]
                carry = fold.rescaled(self.emit, carry, maximum.before, maximum.after)
            totals.append(accumulated(self.emit, fold.monoid, carry, part))
        self.block.add_op(YieldOp([*totals, *stores]))
        types = [type_at(each) for each in totals]
        types += [stacked_type(type_at(each), self.around.loop.size) for each in stores]
        loop, counts = self.around.loop, {"num_carry": len(starts), "num_consts": len(consts)}
        reverse = bool(self.carried) and self.around.cut.order < 0
        params = ParamsAttr.of(length=loop.size, loop=str(loop), **counts, reverse=reverse, unroll=1)
        op = ScanOp.of([*consts, *starts, *stacks, numbers], types, params, [Region(self.block)])
        self.around.block.add_op(op)
        return dict(zip(self.carried, op.results, strict=False)), *op.results[len(carried) :]


class _Carry(NamedTuple):
    """What goes on from trip to trip: before all of them, and after this one; and as it is used, before and after this one."""

    start: SSAValue
    total: SSAValue
    before: SSAValue
    after: SSAValue


class Opened:
    """An op in whose regions a loop ends, as an op on stacks: which of its operands and results are stacks."""

    def __init__(self, op: RegionOp, loop: Loop, varies: Sequence[bool], crossings: list[Crossing]) -> None:
        self.op, self.loop, self.entry, self.crossings = op, loop, op.entry, crossings
        self.operands = list(varies)
        if isinstance(op, CondOp):
            self.operands[0] = False  # All trips take one branch.
        body = len(op.regions) - 1
        carries = range(len(op.operands))[self.entry.carries]
        while True:
            left = self.left(body)
            grown = [number for number, stacked in zip(carries, left, strict=False) if stacked and not self.operands[number]]
            if not grown:
                break
            for number in grown:
                self.operands[number] = True
        branches = range(len(op.regions)) if isinstance(op, CondOp) else [body]
        self.results = [any(each) for each in zip(*(self.left(region) for region in branches), strict=True)]
        for at, number in enumerate(carries):
            self.results[at] = self.operands[number]

    def stacked(self, region: int) -> list[int]:
        """The arguments of a region that are stacks."""
        entry, given = self.entry, self.operands
        args = entry.arguments(region, given, given[entry.carries], given[entry.rows])
        return [at for at, each in enumerate(args) if each]

    def cut(self, region: int) -> Cut:
        return Cut(self.op.regions[region].block, self.loop, self.stacked(region), self.crossings)

    def left(self, region: int) -> list[bool]:
        """Which values that a region yields each trip has."""
        cut = self.cut(region)
        return [value in cut.varying for value in cut.returns]

    def written(self, emit: Emitter, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Writes the op, and returns its results."""
        op, trips, entry = self.op, self.loop.size, self.entry
        rows = range(len(operands))[entry.rows]
        ins = list(operands)
        for at, (value, old) in enumerate(zip(operands, op.operands, strict=True)):
            if self.operands[at] and type_at(value) is type_at(old):
                ins[at] = value = emit.spread(value, (trips, *type_at(value).shape), _behind(value))
            if at in rows and self.operands[at]:
                ins[at] = _turned(emit, value)
        is_test = isinstance(op, WhileOp)
        regions = [
            Region(self.cut(number).written([False] if is_test and number == 0 else self.results))
            for number in range(len(op.regions))
        ]
        ends = cast(Operation, regions[-1].block.last_op).operands
        scanned = len(range(len(operands))[entry.carries]) if isinstance(op, ScanOp) else len(ends)
        types = [
            type_at(each) if at < scanned else stacked_type(type_at(each), cast(ScanOp, op).length)
            for at, each in enumerate(ends)
        ]
        made = type(op).of(ins, types, op.params, regions)
        made.attributes.update(op.attributes)
        emit.into.append(made)
        return [_turned(emit, each) if at >= scanned and self.results[at] else each for at, each in enumerate(made.results)]


def _turned(emit: Emitter, value: SSAValue) -> SSAValue:
    """The array with its first two dims exchanged: a stack of rows, and rows of stacks."""
    return emit.transpose(value, [1, 0, *range(2, len(type_at(value).shape))])


def _behind(value: SSAValue) -> tuple[int, ...]:
    """The dims of a value in a stack of it."""
    return tuple(range(1, len(type_at(value).shape) + 1))


def _row_type(type: ArrayType) -> ArrayType:
    return ArrayType.whole(type.dtype, type.shape[1:])


def stacked_type(type: ArrayType, trips: int) -> ArrayType:
    """The type of a stack, which has a row for each trip."""
    return ArrayType.whole(type.dtype, (trips, *type.shape))
