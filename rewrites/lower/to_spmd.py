"""From placed builders and slicers to one device-local function with explicit collectives.

A nest becomes its body. A slicer in the value's own layout becomes the local value. A redistribution becomes the steps of its
path. The types become local types.

    array.build (data) {...}; array.redistribute %y : f32[data*64]{+model} -> f32[data*64]
        -->   ...; spmd.all_reduce add %0 over (model) : f32[64] -> f32[64]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import spmd
from ...dialects.array import MESH, on_part, set_mesh
from ...dialects.ground.errors import Error
from ...dialects.lax import RegionOp, ScanOp, WhileOp
from ...dialects.mesh import Mesh
from ...dialects.ranges.algebra import Place
from ...dialects.types import ArrayType
from ..redistribute.steps import Path
from .before_loops import free_before_loops
from .constructors import Built, End, Global, Globals, Make, Nest, Nesting, Types, function, on_device, type_of
from .fuse import AsWritten, replayed
from .in_time import run_in_time
from .joined_transforms import join_transforms
from .local_redistribution import redistributed
from .loop_schedule import Crossing
from .transposed_products import swap_products


def to_spmd(module: ModuleOp) -> ModuleOp:
    """Returns the device-local module of a placed one. Raises Error for one that runs on parts of its mesh."""
    if on_part(cast(Operation, module.body.block.first_op)):
        raise Error("an SPMD program is of a whole mesh, and this one runs on parts of it", helps=["lower it to a graph"])
    return in_space(replayed(module, Local, AsWritten))


def in_space(module: ModuleOp) -> ModuleOp:
    """The module, whose mesh has no loops any more: what lay on them runs in loops."""
    if (mesh := module.attributes.get(MESH)) is not None:
        set_mesh(module, Mesh.parse(cast(StringAttr, mesh).data).in_space)
    return module


class Local(Nesting):
    """Writes the device-local program. `local` of every value is one device's part of it."""

    def __init__(self, types: Types) -> None:
        super().__init__(Block(arg_types=[type.local for type in types]))
        self.arguments: Globals = self.known(self.block.args, types)
        self.loops: list[Operation] = []
        self.crossings: list[Crossing] = []
        """The values that several loops over one range need, once the program is written."""

    def known(self, values: Sequence[SSAValue], types: Types) -> list[Global]:
        """Values of these types that no nest builds, from their local values."""
        return [Built(None, value, type) for value, type in zip(values, types, strict=True)]

    def slice_outside(self, source: Global, own: ArrayType) -> SSAValue:
        local = on_device(source)
        self.nest.sliced[local] = source
        return local

    def coordinate_op(self, axes: Sequence[Place]) -> Operation:
        return spmd.CoordinateOp(axes)

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        """Writes the steps for each value; those of several values may share their collectives."""
        self.end_nest_of(sources)
        locals = [on_device(source) for source in sources]
        return self.known(redistributed(locals, list(map(type_of, sources)), targets, self.block, way), targets)

    def barrier(self, values: Globals, prefetch: bool = False) -> Globals:
        self.end_nest_of(values)
        op = (spmd.PrefetchOp if prefetch else spmd.BarrierOp)([on_device(value) for value in values])
        self.block.add_op(op)
        return self.known(op.results, [value.type for value in cast("Sequence[Built]", values)])

    def force(self, value: Global) -> Global:
        return value

    def inside(self, types: Types) -> Local:
        return Local(types)

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        self.end_nest()
        op = self.local_op(make, operands, types)
        self.block.add_op(op)
        if isinstance(op, (ScanOp, WhileOp)):
            self.loops.append(op)
        return self.known(op.results, types)

    def local_op(self, make: Make, operands: Globals, types: Types) -> RegionOp:
        return make(list(map(on_device, operands)), [each.local for each in types])

    def end_nest(self) -> None:
        self.block.add_ops(self.nest.ops)
        self.nest = Nest()

    def finish_into(self, end: End, values: Globals) -> None:
        self.end_nest()
        self.block.add_op(end(list(map(on_device, values))))
        swap_products(self.block)
        join_transforms(self.block)
        if self.loops:
            free_before_loops(self.block, self.loops)

    def ops(self, name: str, results: Types) -> list[Operation]:
        return [function(name, run_in_time(self.block, self.crossings)[0], [type.local for type in results])]
