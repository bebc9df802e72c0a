"""From the axes of a mesh to those of a part of it: the types of values on a device set, and the kernels that run there.

A program is written on the axes of the whole mesh. What runs on a part of it knows only the axes of the part.

    f32[data*64, 8], spmd.all_reduce over (data)   -->   f32[data*64, 8] on pipe_stage1, spmd.all_reduce over (data@pipe_stage1)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from xdsl.dialects.func import FuncOp

from ...dialects.array import set_mesh
from ...dialects.ground.interned import replaced
from ...dialects.mesh import Mesh, with_parts
from ...dialects.ranges.algebra import Axis, Loop, SubAxis
from ...dialects.types import ArrayType, AxesAttr
from .constructors import placed_axes


@cache
def axes_on(devices: Mesh) -> Mapping[Axis, Axis]:
    """The axes of the mesh of which a set is a part, each with the axis of the set."""
    assert devices.part is not None
    own = {place.name: place.axis for place in devices.places if not isinstance(place, Loop)}
    whole = (place.axis for place in devices.part[0].places if not isinstance(place, Loop))
    return {axis: own[axis.name] for axis in whole if axis.name in own}


@cache
def on_set(type: ArrayType, devices: Mesh | None) -> ArrayType:
    """The type of a value that lies on a device set."""
    return type if devices is None else ArrayType.of(type.dtype, replaced(type.layout, axes_on(devices)), devices.devices)


def run_on(kernel: FuncOp, devices: Mesh, parts: Sequence[SubAxis]) -> None:
    """Lets a kernel's function run on a device set. `parts` are the sub-axes of the whole mesh that the program uses."""
    axes = axes_on(devices)
    for op in kernel.body.walk():
        for name, said in op.properties.items():
            if isinstance(said, AxesAttr):
                op.properties[name] = AxesAttr(replaced(said.data, axes))
    set_mesh(kernel, split(devices, parts))


def split(devices: Mesh, parts: Sequence[SubAxis]) -> Mesh:
    """A device set with the sub-axes that the program uses on the whole mesh."""
    return with_parts(devices, replaced(tuple(parts), axes_on(devices)))


def sub_axes(types: Iterable[ArrayType]) -> list[SubAxis]:
    """The sub-axes on which values lie, in the order in which they name them."""
    every = dict.fromkeys(place for type in dict.fromkeys(types) for place in placed_axes(type))
    return [place for place in every if isinstance(place, SubAxis)]
