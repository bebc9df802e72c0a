"""Writes a part of a program as a loop: rows enter, each trip computes a part, and results are stacked or accumulated.

%h: f32[512, 64] --> f32[8, 64, 64];  lax.scan { a part of the ops on f32[64, 64] };  stacked results --> f32[512, 64]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.ground.dtypes import dtype_of, is_float, itemsize
from ...dialects.lax import ScanOp, YieldOp
from ...dialects.params import ParamsAttr
from ...dialects.types import ArrayType
from ..emit import Appending, Emitter, again
from ..program.program import ValueId
from .chunk_part import FOLDS, LoopPart
from .module_copy import Before, Draft


@dataclass(slots=True)
class ChunkLoop:
    """The loop that replaces a part of a draft."""

    part: LoopPart
    draft: Draft
    trips: int
    emit: Emitter = field(init=False)
    inside: dict[ValueId, SSAValue] = field(default_factory=dict[ValueId, SSAValue])
    """The values of one trip, by the values that they are parts of."""

    def write(self) -> None:
        part, dims = self.part, self.part.dims
        self.emit = Emitter(Before(self.draft, self.place()))
        starts = [self.start(value) for value in part.carried]
        rows = [self.split(value, dims[value] or 0) for value in part.rows]
        block = self.body()
        counts = {"length": self.trips, "num_carry": len(part.carried), "num_consts": len(part.consts)}
        types = [*map(self.carry, part.carried), *(self.stack(value) for value in part.stacked)]
        operands = [*(self.draft[value] for value in part.consts), *starts, *rows]
        scan = ScanOp.of(operands, types, ParamsAttr.of(**counts, reverse=False, unroll=1), [Region(block)])
        self.emit.into.append(scan)
        folded, stacks = scan.results[: len(part.carried)], scan.results[len(part.carried) :]
        outs = [*map(self.narrowed, folded, part.carried), *map(self.joined, stacks, part.stacked)]
        self.replace(dict(zip((*part.carried, *part.stacked), outs, strict=True)))

    def replace(self, outs: dict[ValueId, SSAValue]) -> None:
        """Makes readers use the loop's results instead of those of the ops, which are removed.

        Other values map to those of a trip.
        """
        for value, out in outs.items():
            self.draft.replace(value, out)
        for node in self.part.nodes:
            for value in (value for value in node.results if value not in outs):
                self.draft.left(self.draft[value])
                self.draft.values[self.draft.ssa[value]] = self.inside[value]

    # --- types ---------------------------------------------------------------------------------------------------------

    def type(self, value: ValueId) -> ArrayType:
        return self.part.program.types[value]

    def local(self, value: ValueId) -> ArrayType:
        """The type of the part of a value in one trip."""
        type, dim = self.type(value), self.part.dims[value]
        return ArrayType.whole(type.dtype, tuple(n // self.trips if at == dim else n for at, n in enumerate(type.shape)))

    def carry(self, value: ValueId) -> ArrayType:
        """The type in which a fold is accumulated: float32 for sums of narrower floats, because each trip would round them."""
        type = self.type(value)
        is_sum = self.part.folds(value) == "add" and is_float(dtype_of(type.dtype)) and itemsize(type.dtype) < 4
        return ArrayType.whole("float32" if is_sum else type.dtype, type.shape)

    def stack(self, value: ValueId) -> ArrayType:
        return ArrayType.whole(self.type(value).dtype, (self.trips, *self.local(value).shape))

    # --- before and after the loop -----------------------------------------------------------------------------------------

    def place(self) -> Operation:
        """The op before which the loop is inserted: the last of the part.

        Ops between that read its results are moved behind the loop.
        """
        ops = [self.draft.ops[node.op] for node in self.part.nodes]
        inside, moved, each = set(ops), list[Operation](), ops[0]
        after = {result for op in ops for result in op.results}
        while each is not ops[-1]:
            if each not in inside and any(operand in after for inner in each.walk() for operand in inner.operands):
                after.update(each.results)
                moved.append(each)
            each = cast(Operation, each.next_op)
        block = cast(Block, ops[-1].parent)
        for op in reversed(moved):
            op.detach()
            block.insert_op_after(op, ops[-1])
        return ops[-1]

    def start(self, value: ValueId) -> SSAValue:
        """The initial value of an accumulated result: the unit of its fold, in its shape."""
        type = self.carry(value)
        return self.emit.spread(self.emit.unit(FOLDS[self.part.folds(value)].unit, type.dtype), type.shape)

    def narrowed(self, folded: SSAValue, value: ValueId) -> SSAValue:
        """Casts an accumulated result to the dtype of the value."""
        dtype = self.type(value).dtype
        return self.emit.cast(folded, dtype)

    def split(self, value: ValueId, dim: int) -> SSAValue:
        """Splits the range's dim into trips and rows, with the trips first."""
        shape, local = self.type(value).shape, self.local(value).shape
        array = self.emit.reshape(self.draft[value], (*shape[:dim], self.trips, *local[dim:]))
        return self.emit.transpose(array, (dim, *(at for at in range(len(shape) + 1) if at != dim)))

    def joined(self, rows: SSAValue, value: ValueId) -> SSAValue:
        """Merges the stacked rows of all trips into one dim."""
        shape, dim = self.type(value).shape, self.part.dims[value] or 0
        order = (*range(1, dim + 1), 0, *range(dim + 1, len(shape) + 1))
        return self.emit.reshape(self.emit.transpose(rows, order), shape)

    # --- inside --------------------------------------------------------------------------------------------------------------

    def body(self) -> Block:
        """The block of one trip: the ops on parts, then the updates of the carries."""
        part = self.part
        types = [*map(self.type, part.consts), *map(self.carry, part.carried), *map(self.local, part.rows)]
        block = Block(arg_types=types)
        at, end = len(part.consts), len(part.consts) + len(part.carried)
        self.inside.update(zip(part.consts, block.args[:at], strict=True))
        self.inside.update(zip(part.rows, block.args[end:], strict=True))
        for node in part.nodes:
            ins, outs = [self.inside[value] for value in node.operands], [self.local(value) for value in node.results]
            op = again(node.op, ins, outs)
            block.add_op(op)
            self.draft.origins[op] = node.op
            self.inside.update(zip(node.results, op.results, strict=True))
        emit = Emitter(_Inside(block, self.draft, part.nodes[-1].op))
        carries = [self.accumulated(emit, have, v) for have, v in zip(block.args[at:end], part.carried, strict=True)]
        block.add_op(YieldOp.create(operands=[*carries, *(self.inside[value] for value in part.stacked)]))
        return block

    def accumulated(self, emit: Emitter, have: SSAValue, value: ValueId) -> SSAValue:
        type, part = self.carry(value), self.inside[value]
        more = emit.cast(part, type.dtype)
        return emit.make(FOLDS[self.part.folds(value)].op, (have, more), type.dtype, type.shape)


@dataclass(slots=True)
class _Inside(Appending):
    """Appends ops to a block, and records the op of the original program from which they come."""

    block: Block
    draft: Draft
    origin: Operation

    def append(self, op: Operation) -> None:
        self.block.add_op(op)
        self.draft.origins[op] = self.origin
