"""From placed builders and slicers to one device-local function with explicit collectives.

A nest becomes its body. A slicer in the value's own layout becomes the local value. A redistribution becomes the steps of its
path. The types become local types.

    array.build (data) {...}; array.redistribute %y : f32[data*64]{+model} -> f32[data*64]
        -->   ...; spmd.all_reduce add %0 over (model) : f32[64] -> f32[64]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import spmd
from ...dialects.array import (
    BarrierOp,
    BuildOp,
    CoordinateOp,
    Redistribute,
    RedistributeOp,
    SliceOp,
    YieldOp,
    keep_mesh,
)
from ...dialects.dtypes import itemsize
from ...dialects.lax import LaxOp, RegionOp, ScanOp, WhileOp
from ...dialects.module import Module
from ...dialects.names import keep_names
from ...dialects.types import ArrayType
from ..redistribute.search import Step, joint, path
from ..rewire import rewire
from .before_loops import free_before_loops
from .gathered_folds import fold_parts
from .scan_blocks import Across
from .swapped import product_of, swapped


def to_spmd(module: ModuleOp) -> ModuleOp:
    """The device-local module of a placed one, whose ops move into it: `module` is used up."""
    main = cast(func.FuncOp, module.body.block.first_op)
    lowering = Lowering()
    block = Block(arg_types=[lowering.local(type) for type in main.function_type.inputs])
    lowering.block(main.body.block, block)
    types = ([arg.type for arg in block.args], [lowering.local(type) for type in main.function_type.outputs])
    made = func.FuncOp(main.sym_name.data, types, Region(block))
    keep_names(main, made)
    result = Module([made])
    keep_mesh(module, result)
    return result


class Lowering:
    """Lowers blocks; `locals` maps a global value, or a slice of it, to its local value."""

    def __init__(self) -> None:
        self.locals: dict[SSAValue, SSAValue] = {}
        self.loops: dict[Block, list[Operation]] = {}
        self.done: set[Operation] = set()
        """The ops that are lowered; those that did not move still read what they read."""
        self.exchanged: dict[Operation, Operation] = {}
        """The transpose whose place a product has taken: ops that are not lowered yet read that."""

    def local(self, type: object) -> ArrayType:
        """The local type of a value of this type."""
        return cast(ArrayType, type).local

    def block(self, source: Block, target: Block) -> None:
        """Lower the ops of one block into another, whose arguments are the local ones."""
        self.locals.update(zip(source.args, target.args, strict=True))
        for op in list(source.ops):
            self.op(op, target)
        if loops := self.loops.pop(target, None):
            free_before_loops(target, loops)

    def op(self, op: Operation, target: Block) -> None:
        self.done.add(op)
        match op:
            case RegionOp():
                self.regions(op, target)
            case LaxOp():
                self.move(op, target)
            case BuildOp():
                for inner in list(op.body.block.ops):
                    self.op(inner, target)
            case YieldOp():
                build = cast(BuildOp, op.parent_op())
                for result, value in zip(build.results, op.operands, strict=True):
                    self.locals[result] = self.get(value)
            case SliceOp():
                self.locals[op.out] = self.steps(op.source, op.target, target)
            case RedistributeOp():
                self.redistribute(op, target)
            case BarrierOp():
                self.replace(op, spmd.BarrierOp([self.get(value) for value in op.operands]), target)
            case CoordinateOp():
                self.replace(op, spmd.CoordinateOp(op.axes), target)
            case _:
                self.move(op, target)

    def get(self, value: SSAValue) -> SSAValue:
        return self.locals.get(value, value)

    def replace(self, old: Operation, new: Operation, target: Block) -> None:
        target.add_op(new)
        self.locals.update(zip(old.results, new.results, strict=True))

    def move(self, op: Operation, target: Block) -> None:
        """A local op stays the same except for the names of its operands."""
        rewire(op, self.locals)
        product = product_of(op)
        op.detach()
        if product is None or self.is_read_later(product):
            target.add_op(op)
            return
        made = swapped(op, product)
        self.exchanged[made] = op
        self.replace(op, made, target)
        op.drop_all_references()
        product.detach()
        product.erase()

    def is_read_later(self, product: Operation) -> bool:
        """Whether ops read a product that has taken the place of its transpose, and are not lowered yet."""
        transpose = self.exchanged.get(product)
        return transpose is not None and any(use.operation not in self.done for use in transpose.results[0].uses)

    def regions(self, op: RegionOp, target: Block) -> None:
        blocks: list[Block] = []
        for source in (region.block for region in op.regions):
            blocks.append(Block(arg_types=[self.local(arg.type) for arg in source.args]))
            self.block(source, blocks[-1])
        results = [self.local(type) for type in op.result_types]
        new = type(op).of([self.get(value) for value in op.operands], results, op.params, list(map(Region, blocks)))
        self.replace(op, new, target)
        if isinstance(new, (ScanOp, WhileOp)):
            self.loops.setdefault(target, []).append(new)

    def redistribute(self, op: Redistribute, target: Block) -> None:
        """The steps of each value; those of several values may share their collectives."""
        alone = [path(x.layout, y.layout, itemsize(x.dtype)) for x, y in op.changes] if len(op.ins) > 1 else ()
        if alone and (ways := joint(alone)):
            steps = [way.steps[0] for way in ways]
            ops, made = steps[0].exchange(steps, [self.get(value) for value in op.ins])
            target.add_ops(ops)
            self.locals.update(zip(op.results, made, strict=True))
        else:
            for value, out, (_, after) in zip(op.ins, op.results, op.changes, strict=True):
                self.locals[out] = self.steps(value, after, target)

    def steps(self, source: SSAValue, wanted: ArrayType, target: Block) -> SSAValue:
        """The steps of a redistribution. A slice is one that never communicates."""
        type = cast(ArrayType, source.type)
        local = self.get(source)
        if type is wanted:
            return local
        before, after = type.layout, wanted.layout
        resolved = tuple(each for each in before.pending if each not in after.pending)
        scans, sums = (tuple(each for each in resolved if each.scans is scanned) for scanned in (True, False))
        whole = before.with_pending(())
        if scans:
            across = Across(local, whole, scans[0], target)
            local = across.finish(self.walk(across.steps(), across.total(), target))
        folds, sums = (tuple(each for each in sums if each.is_gathered is gathered) for gathered in (True, False))
        if folds:
            local = fold_parts(local, whole, folds, target, self.walk)
        way = path(before.with_pending(sums), after.with_pending(()), itemsize(type.dtype))
        return self.walk(way.steps, local, target)

    def walk(self, steps: Iterable[Step], local: SSAValue, target: Block) -> SSAValue:
        for step in steps:
            ops = step.ops(local)
            target.add_ops(ops)
            local = ops[-1].results[0]
        return local
