"""One step of a redistribution as an op on the local array.

all_reduce add over (data)   -->   %y = spmd.all_reduce add %x over (data)
pad [30] to [32]             -->   %y = lax.pad %x, 0 {padding_config = ((0, 2, 0),)}
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...dialects import spmd
from ...dialects.mesh import Mesh
from ..redistribute.steps import Step, pairs
from .emit import Emitter, Sink, type_at


def emit_step(step: Step, x: SSAValue, mesh: Mesh, into: Sink) -> SSAValue:
    """Appends the step and returns its result."""
    emit, type = Emitter(into), type_at(x)
    match step.kind:
        case "pad":
            shape = step.after.local_shape(mesh)
            more = tuple((0, after - before, 0) for before, after in zip(type.shape, shape, strict=True))
            return emit.make("pad", (x, emit.zero(type.dtype)), type.dtype, shape, padding_config=more)
        case "cut":
            shape = step.after.local_shape(mesh)
            return emit.make("slice", (x,), type.dtype, shape, start_indices=(0,) * len(shape), strides=None)
        case _:
            op = collective(step, x, mesh)
            into.append(op)
            return op.results[0]


def collective(step: Step, x: SSAValue, mesh: Mesh) -> Operation:
    """One step as an op on the local array."""
    match step.kind:
        case "all_reduce":
            return spmd.AllReduceOp.make(x, step.axes, mesh, monoid=step.monoid)
        case "reduce_scatter":
            return spmd.ReduceScatterOp.make(x, step.axes, mesh, monoid=step.monoid, dim=step.dim, block=step.block(mesh))
        case "all_gather":
            return spmd.AllGatherOp.make(x, step.axes, mesh, dim=step.dim, block=step.block(mesh))
        case "slice":
            return spmd.SliceOp.make(x, step.axes, mesh, dim=step.dim, block=step.block(mesh))
        case "all_to_all":
            split = {"split": step.to_dim, "split_block": step.to_block(mesh)}
            return spmd.AllToAllOp.make(x, step.axes, mesh, **split, concat=step.dim, concat_block=step.block(mesh))
        case _:
            return spmd.PermuteOp.make(x, step.axes, mesh, pairs=spmd.PairsAttr(pairs(step, mesh)))
