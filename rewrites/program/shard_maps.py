"""Ops with their own mesh axes: a user's `shard_map`, whose body runs unchanged.

The op itself gives the layouts of its operands and results. It has one index for each of its axes, with the size of the axis,
and that index is placed on the axis from the start. No other index of it can be placed.

    shard_map {in_specs = ((("data",), ()),)} %x : f32[512, 8]   -->   %x wanted f32[data*128, 8]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from ...dialects.array import ArrayType
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.tilings import Index, Instance, SubIndex, SubIndices
from ...dialects.mesh import Mesh
from ...dialects.params import ParamsAttr
from ...dialects.ranges.algebra import Place
from .program import Node, Program, Signature

Spec = tuple[tuple[str, ...], ...]
"""The axes of each dim, major to minor."""


def own_axes(params: ParamsAttr) -> dict[str, int]:
    """The op's own axes with their sizes. Most ops have none."""
    return dict(cast("tuple[tuple[str, int], ...]", params.get("own_axes") or ()))


def mesh_misfit(params: ParamsAttr, mesh: Mesh) -> str | None:
    """Why the body of an op with its own axes cannot run on the devices of the mesh; None if it can, and for other ops."""
    axes = own_axes(params)
    if all(mesh.axes.get(axis) == size for axis, size in axes.items()):
        return None
    said = ", ".join(f"{axis}={size}" for axis, size in axes.items())
    return f"its axes {said} are not axes of the plan's mesh {mesh}"


def own_signature(params: ParamsAttr, mesh: Mesh, ins: Sequence[ArrayType], outs: Sequence[ArrayType]) -> Signature:
    """The signature of an op with its own axes, which fit the mesh: an index for each axis with more than one device."""
    axes = [mesh.place(axis) for axis, size in own_axes(params).items() if size > 1]
    numbers = {axis: number for number, axis in enumerate(axes)}
    indices = tuple(Index(axis.size) for axis in axes)
    sides = (ins, "in_specs"), (outs, "out_specs")
    specs = [(types, cast("tuple[Spec, ...]", params[key])) for types, key in sides]
    operands, results = (
        tuple(_digits(type.shape, spec, numbers) for type, spec in zip(types, each, strict=True)) for types, each in specs
    )
    signature = Signature(Instance(definitions["whole"], indices, operands, results, moves=False), ins, outs)
    signature.own = numbers
    return signature


def _digits(shape: Sequence[int], spec: Spec, numbers: dict[Place, int]) -> SubIndices:
    """For each dim, a digit for each of its axes. A local block stays together."""
    dims: list[tuple[SubIndex, ...]] = []
    for extent, axes in zip(shape, spec, strict=True):
        placed = [axis for name in axes for axis in numbers if axis.name == name]
        left = extent
        digits: list[SubIndex] = []
        for axis in placed:
            left //= axis.size
            digits.append(SubIndex(numbers[axis], left, None if axis == placed[0] else axis.size))
        dims.append(tuple(digits))
        assert left * prod(axis.size for axis in placed) == extent, "JAX has checked that the axes divide"
    return tuple(dims)


def own_claims(program: Program) -> dict[Place, list[tuple[Node, int]]]:
    """Maps each axis to the nodes that have it as their own, each with the index that is placed on it."""
    found: dict[Place, list[tuple[Node, int]]] = {}
    for node in program.nodes:
        for axis, index in node.signature.own.items():
            found.setdefault(axis, []).append((node, index))
    return found
