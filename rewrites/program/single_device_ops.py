"""Ops that run once, on one device: an effect, a callback, a draw that differs from call to call.

If every device ran it, the devices could get different results, and a loop that depends on it could end on some devices only.
So only the first device runs it, and the others hold zeros. Each result is a pending sum over all devices, and an `all_reduce`
right after the op shares it. The op has one index for each axis of the mesh, folded by a sum and placed on the axis from the
start. No array has that index.

    io_callback {once = True} : f32[8]   -->   f32[8]{+data, +model}, then all_reduce add over (data, model)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.array import ArrayType
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.tilings import Index, Instance
from ...dialects.mesh import Mesh
from .program import Signature


def once_signature(mesh: Mesh, ins: Sequence[ArrayType], outs: Sequence[ArrayType]) -> Signature:
    """The signature of an op that runs once. It has an index for each axis of a device set with more than one device."""
    axes = [axis for axis in mesh.places if axis.size > 1 and axis.name not in mesh.apart]
    operands, results = (tuple(((),) * len(type.shape) for type in side) for side in (ins, outs))
    indices = tuple(Index(axis.size, monoid="add") for axis in axes)
    signature = Signature(Instance(definitions["whole"], indices, operands, results, moves=False), ins, outs)
    signature.own = {axis: number for number, axis in enumerate(axes)}
    signature.once = True
    return signature
