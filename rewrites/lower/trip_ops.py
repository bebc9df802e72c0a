"""How the ops over a loop are written in a trip of it, given the number of the trip.

spmd.slice %x dim 0 block 8 over (t:8)   -->   dynamic_slice %x, 8 * trip          a fold: the carry and the trip's part
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from xdsl.ir import Operation, SSAValue

from ...dialects import spmd
from ...dialects.array import Coordinate
from ...dialects.ground.errors import Error
from ...dialects.ground.monoids import MONOIDS
from ...dialects.ranges.algebra import Loop
from ..emit import IDS, Emitter, type_at
from ..redistribute.permute_rounds import shift

LAST = "last"
"""The fold that keeps what the last trip has."""


def in_trip(emit: Emitter, op: Operation, operands: Sequence[SSAValue], loop: Loop, trip: SSAValue) -> SSAValue:
    """A slice, a choice of rows, or a coordinate, over a loop and perhaps over axes."""
    if isinstance(op, Coordinate):
        return _coordinate(emit, op, loop, trip)
    (x,) = operands
    if isinstance(op, spmd.SliceOp):
        dim, block, minor = op.number("dim"), op.number("block"), op.over.size
        for place in op.axes:
            minor //= place.size
            x = _row(emit, x, dim, block * minor, loop, trip) if place is loop else _slice(emit, x, dim, block * minor, place)
        return x
    assert isinstance(op, spmd.PickOp), op.name
    return _picked(emit, op, x, trip)


def _coordinate(emit: Emitter, op: Coordinate, loop: Loop, trip: SSAValue) -> SSAValue:
    number = emit.number(0, IDS)
    for place in op.along.data:
        here = trip
        if place is not loop:
            along = spmd.CoordinateOp([place])
            emit.into.append(along)
            here = along.out
        number = emit.apply("add", emit.apply("mul", number, place.size), here)
    return number


def _slice(emit: Emitter, x: SSAValue, dim: int, block: int, place: object) -> SSAValue:
    op = spmd.SliceOp.make(x, [cast(Loop, place)], dim=dim, block=block)
    emit.into.append(op)
    return op.out


def _row(emit: Emitter, x: SSAValue, dim: int, block: int, loop: Loop, trip: SSAValue) -> SSAValue:
    """The blocks of a trip: `M * trips * block --> M * block`."""
    shape = type_at(x).shape
    before, after, many = shape[:dim], shape[dim + 1 :], shape[dim] // (loop.size * block)
    if many == 1:
        return sliced(emit, x, dim, emit.apply("mul", trip, block), block)
    apart = emit.reshape(x, (*before, many, loop.size, block, *after))
    return emit.reshape(sliced(emit, apart, dim + 1, trip, 1), (*before, many * block, *after))


def sliced(emit: Emitter, x: SSAValue, dim: int, start: SSAValue, length: int) -> SSAValue:
    """So many rows of an array, from `start` on."""
    type = type_at(x)
    shape = (*type.shape[:dim], length, *type.shape[dim + 1 :])
    starts = [start if at == dim else emit.number(0, IDS) for at in range(len(shape))]
    return emit.make("dynamic_slice", (x, *starts), type.dtype, shape)


def _picked(emit: Emitter, op: spmd.PickOp, x: SSAValue, trip: SSAValue) -> SSAValue:
    rows = op.rows.data
    if len(op.axes) > 1 or any(b - a != 1 for each in rows for a, b in pairwise(each)):
        raise Error(
            f"rows of {type_at(x).text} are chosen over {op.over.text}, which no loop does",
            helps=["place the dim on the loop alone"],
        )
    starts = [each[0] for each in rows]
    start = emit.number(starts[0], IDS)
    for number, first in enumerate(starts[1:], 1):
        start = emit.select(emit.equals(trip, number), emit.number(first, IDS), start)
    return sliced(emit, x, op.number("dim"), start, len(rows[0]))


# --- folds and stacks -----------------------------------------------------------------------------------------------------


def _carried(monoid: str, dtype: str) -> str:
    """The dtype of a carry: that of the value, or float32 for a sum of narrow floats."""
    is_narrow = dtype.startswith(("bfloat16", "float16", "float8", "float4"))
    return "float32" if monoid == "add" and is_narrow else dtype


def begin_fold(emit: Emitter, monoid: str, value: SSAValue) -> SSAValue:
    """The carry before the first trip. `value` is one trip's part."""
    type = type_at(value)
    dtype = _carried(monoid, type.dtype)
    return emit.spread(emit.unit("add" if monoid == LAST else monoid, dtype), type.shape)


def accumulated(emit: Emitter, monoid: str, carry: SSAValue, value: SSAValue) -> SSAValue:
    """The carry after a trip."""
    dtype = type_at(carry).dtype
    if monoid == LAST:
        return value
    return emit.folded(monoid, carry, emit.cast(value, dtype))


def arranged(emit: Emitter, op: spmd.AllGatherOp, stack: SSAValue) -> SSAValue:
    """A stack as a gather leaves it: `[trips, M * block] --> M * trips * block`."""
    trips, *shape = type_at(stack).shape
    dim, block = op.number("dim"), op.number("block")
    before, after = shape[:dim], shape[dim + 1 :]
    many = shape[dim] // block
    rank = len(before)
    apart = emit.reshape(stack, (trips, *before, many, block, *after))
    order = [*range(1, rank + 2), 0, *range(rank + 2, rank + 3 + len(after))]
    return emit.reshape(emit.transpose(apart, order), (*before, many * trips * block, *after))


def permuted(emit: Emitter, op: spmd.PermuteOp, stack: SSAValue) -> SSAValue:
    """The stack of what each trip receives from the one that sends to it; zeros if there is none."""
    type = type_at(stack)
    senders = {target: source for source, target in op.pairs.data}
    row = (1, *type.shape[1:])
    parts = [
        emit.part(stack, 0, senders[trip]) if trip in senders else emit.spread(emit.unit("add", type.dtype), row)
        for trip in range(type.shape[0])
    ]
    return emit.concatenate(parts, 0)


def order_of(op: Operation) -> int:
    """The order of the trips in which each goes on from the one before it: 1 forwards, -1 backwards, 0 in neither."""
    if isinstance(op, spmd.ExscanOp):
        return -1 if op.backwards.data else 1
    return shift(op.pairs.data, op.over.size) if isinstance(op, spmd.PermuteOp) and len(op.axes) == 1 else 0


def on_stack(emit: Emitter, op: Operation, stack: SSAValue) -> SSAValue:
    """A gather, a permute or an exscan over a loop, of the stack of what its trips have."""
    if isinstance(op, spmd.AllGatherOp):
        return arranged(emit, op, stack)
    if isinstance(op, spmd.PermuteOp):
        return permuted(emit, op, stack)
    assert isinstance(op, spmd.ExscanOp), op.name
    return scanned(emit, op, stack)


def scanned(emit: Emitter, op: spmd.ExscanOp, stack: SSAValue) -> SSAValue:
    """The stack of what is folded before each trip, or behind it."""
    type, monoid = type_at(stack), op.monoid.data
    trips, *shape = type.shape
    backwards, first = bool(op.backwards.data), emit.spread(emit.unit(monoid, type.dtype), (1, *shape))
    whole = emit.make(MONOIDS[monoid].scan, (stack,), type.dtype, type.shape, axis=0, reverse=backwards)
    rest = emit.part(whole, 0, 1 if backwards else 0, trips - 1)
    return emit.concatenate([rest, first] if backwards else [first, rest], 0)
