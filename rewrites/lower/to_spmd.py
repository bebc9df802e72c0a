"""From placed builders and slicers to one device-local function with explicit collectives.

A nest is its body. A slicer in the value's own layout is the local value. A redistribution is the steps of its path. The types
are local types.

    array.build (data) {...}; array.redistribute %y : f32[data*64]{+model} -> f32[data*64]
        -->   ...; spmd.all_reduce add %0 over (model) : f32[64] -> f32[64]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import spmd
from ...dialects.dtypes import itemsize
from ...dialects.lax import RegionOp, ScanOp, WhileOp
from ...dialects.mesh import Mesh
from ...dialects.types import ArrayType
from ..redistribute.search import Step, joint, path
from .before_loops import free_before_loops
from .constructors import Built, End, Global, Nest, Nesting, function, type_of
from .fuse import AsWritten, replayed
from .gathered_folds import fold_parts
from .scan_blocks import Across
from .swapped import swap_products


def to_spmd(module: ModuleOp) -> ModuleOp:
    """The device-local module of a placed one."""
    return replayed(module, Local, AsWritten())


def on_device(value: Global) -> SSAValue:
    """What one device has of a value."""
    assert isinstance(value, Built)
    return value.local


class Local(Nesting):
    """Writes what one device does; of every value it knows what a device has of it."""

    def __init__(self, types: Sequence[ArrayType], mesh: Mesh) -> None:
        super().__init__(Block(arg_types=[type.local(mesh) for type in types]), mesh)
        self.arguments: Sequence[Global] = self.moved(self.block.args, types)
        self.loops: list[Operation] = []

    def moved(self, values: Sequence[SSAValue], types: Sequence[ArrayType]) -> list[Global]:
        """Values of these types that no nest builds, by what a device has of them."""
        return [Built(None, value, type) for value, type in zip(values, types, strict=True)]

    def slice_outside(self, source: Global, own: ArrayType) -> SSAValue:
        local = on_device(source)
        self.nest.sliced[local] = source
        return local

    def coordinate_op(self, axes: Sequence[str]) -> Operation:
        return spmd.CoordinateOp(axes)

    def redistribute(self, sources: Sequence[Global], targets: Sequence[ArrayType]) -> Sequence[Global]:
        """The steps of each value; those of several values may share their collectives."""
        self.end_nest_of(sources)
        return self.moved(steps(sources, targets, self.block, self.mesh), targets)

    def barrier(self, values: Sequence[Global]) -> Sequence[Global]:
        self.end_nest_of(values)
        op = spmd.BarrierOp([on_device(value) for value in values])
        self.block.add_op(op)
        return self.moved(op.results, [value.type for value in cast("Sequence[Built]", values)])

    def force(self, value: Global) -> Global:
        return value

    def inside(self, types: Sequence[ArrayType]) -> Local:
        return Local(types, self.mesh)

    def outer(
        self, like: RegionOp, operands: Sequence[Global], types: Sequence[ArrayType], regions: Sequence[Region]
    ) -> Sequence[Global]:
        self.end_nest()
        op = self.local_op(like, operands, types, regions)
        self.block.add_op(op)
        if isinstance(op, (ScanOp, WhileOp)):
            self.loops.append(op)
        return self.moved(op.results, types)

    def local_op(
        self, like: RegionOp, operands: Sequence[Global], types: Sequence[ArrayType], regions: Sequence[Region]
    ) -> RegionOp:
        return type(like).of(list(map(on_device, operands)), [each.local(self.mesh) for each in types], like.params, regions)

    def end_nest(self) -> None:
        self.block.add_ops(self.nest.ops)
        self.nest = Nest()

    def finish_into(self, end: End, values: Sequence[Global]) -> None:
        self.end_nest()
        self.block.add_op(end(list(map(on_device, values))))
        swap_products(self.block)
        if self.loops:
            free_before_loops(self.block, self.loops)

    def ops(self, name: str, results: Sequence[ArrayType]) -> list[Operation]:
        return [function(name, self.block, [type.local(self.mesh) for type in results])]


def steps(sources: Sequence[Global], targets: Sequence[ArrayType], block: Block, mesh: Mesh) -> list[SSAValue]:
    """Writes the steps that bring each value into another layout; returns what a device has of it then."""
    locals, befores = list(map(on_device, sources)), list(map(type_of, sources))
    changes = list(zip(befores, targets, strict=True))
    alone = [path(x.layout, y.layout, itemsize(x.dtype), mesh) for x, y in changes] if len(changes) > 1 else ()
    if alone and (ways := joint(alone, mesh)):
        first = [way.steps[0] for way in ways]
        ops, made = first[0].exchange(first, locals, mesh)
        block.add_ops(ops)
        return made
    return [_steps(local, x, y, block, mesh) for local, (x, y) in zip(locals, changes, strict=True)]


def _steps(local: SSAValue, type: ArrayType, wanted: ArrayType, block: Block, mesh: Mesh) -> SSAValue:
    if type is wanted:
        return local
    before, after = type.layout, wanted.layout
    resolved = tuple(each for each in before.pending if each not in after.pending)
    scans, sums = (tuple(each for each in resolved if each.scans is scanned) for scanned in (True, False))
    whole = before.with_pending(())

    def walk(steps: Iterable[Step], local: SSAValue, block: Block) -> SSAValue:
        for step in steps:
            ops = step.ops(local, mesh)
            block.add_ops(ops)
            local = ops[-1].results[0]
        return local

    if scans:
        across = Across(local, whole, scans[0], mesh, block)
        local = across.finish(walk(across.steps(), across.total(), block))
    folds, sums = (tuple(each for each in sums if each.is_gathered is gathered) for gathered in (True, False))
    if folds:
        local = fold_parts(local, whole, folds, mesh, block, walk)
    way = path(before.with_pending(sums), after.with_pending(()), itemsize(type.dtype), mesh)
    return walk(way.steps, local, block)
