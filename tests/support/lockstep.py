"""All devices of a mesh in lockstep, on NumPy: a second implementation of collectives, independent of the compiler.

A value is one array for each device, keyed by the device's coordinates. `part` is the part of a device under some tiles,
element by element, without blocks; the collectives use blocks and no tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray
from tiles import Tile
from xdsl.dialects import func
from xdsl.ir import Block, Region

from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import Place
from partita.dialects.reference.interpret import run_devices
from partita.dialects.types import ArrayType
from partita.rewrites.redistribute.kinds.all_gather import AllGather
from partita.rewrites.redistribute.kinds.all_to_all import AllToAll
from partita.rewrites.redistribute.kinds.folds import AllReduce, ReduceScatter
from partita.rewrites.redistribute.kinds.local import Slice
from partita.rewrites.redistribute.kinds.permute import Permute
from partita.rewrites.redistribute.kinds.pieces import Pieces
from partita.rewrites.redistribute.steps import Step

Array = NDArray[np.int64]
Device = tuple[int, ...]
Value = dict[Device, Array]

SUMS = ("add", "pick")
FOLDS = {"add": np.add, "pick": np.add, "max": np.maximum, "min": np.minimum}


def part(whole: Array, tiles: Sequence[Tile], at: Mapping[Place, int], mesh: Mesh) -> Array:
    """The elements of `whole` that the device `at` holds, in order."""
    for dim, extent in enumerate(whole.shape):
        mine = [
            n
            for n in range(extent)
            if all(n // stride % mesh[axis] == at[mesh.place(axis)] for axis, on, stride in tiles if on == dim)
        ]
        whole = whole.take(mine, axis=dim)
    return whole


def distribute(whole: Array, tiles: Sequence[Tile], mesh: Mesh) -> Value:
    """The part of `whole` on every device."""
    return {tuple(at.values()): part(whole, tiles, at, mesh) for at in mesh.coordinates()}


def summands(whole: Array, tiles: Sequence[Tile], pending: Sequence[tuple[str, str]], mesh: Mesh, seed: int) -> Value:
    """The arrays of all devices if `whole` is pending over some axes: parts that fold to it, replicated along unused axes."""
    monoid = {monoid for monoid, _ in pending}.pop() if pending else "add"
    names = list(mesh)
    used = [names.index(axis) for axis in (*(tile[0] for tile in tiles), *(axis for _, axis in pending))]
    exact = distribute(whole, tiles, mesh)
    value: Value = {}
    for device, local in exact.items():
        noise = np.random.default_rng([seed, *(device[at] for at in used)]).integers(1, 9, local.shape)
        value[device] = local + noise if monoid == "min" else local - noise
    for first, *rest in groups(value, [axis for _, axis in pending], names):
        others = sum((value[device] for device in rest), np.zeros_like(exact[first]))
        value[first] = exact[first] - others if monoid in SUMS else exact[first]
    return value


def groups(value: Value, axes: Sequence[str], names: Sequence[str]) -> list[list[Device]]:
    """The devices of one group of a collective over `axes`, in the order of the axes, major to minor."""
    order = [names.index(axis) for axis in axes]
    found: dict[Device, list[Device]] = {}
    for device in sorted(value, key=lambda device: [device[at] for at in order]):
        found.setdefault(tuple(c for at, c in enumerate(device) if at not in order), []).append(device)
    return list(found.values())


def run(step: Step, value: Value, mesh: Mesh) -> Value:
    """One step of a redistribution on every device; of pieces, its ops are run by the interpreter."""
    if isinstance(step, Pieces):
        devices = sorted(value)
        return dict(zip(devices, run_steps([step], [value[device] for device in devices], mesh), strict=True))
    names = list(mesh)
    result: Value = {}
    for group in groups(value, step.names, names):
        locals_ = [value[device] for device in group]
        for rank, (device, local) in enumerate(zip(group, _group(step, locals_, mesh), strict=True)):
            assert rank == _rank(device, step.names, names, mesh)
            result[device] = local
    return result


def run_steps(steps: Sequence[Step], value: list[Array], mesh: Mesh) -> list[Array]:
    """The local arrays after the ops of some steps."""
    block = Block(arg_types=[ArrayType.whole(value[0].dtype.name, value[0].shape)])
    local = block.args[0]
    for step in steps:
        ops = step.ops(local)
        block.add_ops(ops)
        local = ops[-1].results[0]
    block.add_op(func.ReturnOp(local))
    return run_devices(func.FuncOp("main", ([block.args[0].type], [local.type]), Region(block)), [value], mesh.size)[0]


def _rank(device: Device, axes: Sequence[str], names: Sequence[str], mesh: Mesh) -> int:
    rank = 0
    for axis in axes:
        rank = rank * mesh[axis] + device[names.index(axis)]
    return rank


def _group(step: Step, values: list[Array], mesh: Mesh) -> list[Array]:
    """One step on the devices of one group, numbered along its axes."""
    n = len(values)
    assert n == prod(mesh[axis] for axis in step.names)
    match step:
        case Slice():
            return [split(value, step.dim, step.block, n)[rank] for rank, value in enumerate(values)]
        case AllReduce():
            return [_fold(step.monoid, values)] * n
        case ReduceScatter():
            return split(_fold(step.monoid, values), step.dim, step.block, n)
        case AllGather():
            return [join(values, step.dim, step.block)] * n
        case AllToAll():
            sent = [split(value, step.to_dim, step.split_block, n) for value in values]
            return [join([parts[rank] for parts in sent], step.dim, step.block) for rank in range(n)]
        case Permute():
            moves = step.pairs()
            assert sorted(source for source, _ in moves) == sorted(target for _, target in moves) == list(range(n))
            sources = {target: source for source, target in moves}
            return [values[sources[rank]] for rank in range(n)]
        case _:
            raise AssertionError(step)


def _fold(monoid: str, values: list[Array]) -> Array:
    result = values[0]
    for value in values[1:]:
        result = FOLDS[monoid](result, value)
    return result


def split(value: Array, dim: int, block: int, n: int) -> list[Array]:
    """The parts of a local array for n devices: runs of `block` elements, dealt in turn."""
    before, extent, after = value.shape[:dim], value.shape[dim], value.shape[dim + 1 :]
    dealt = value.reshape(*before, extent // (n * block), n, block, *after)
    return [dealt.take(rank, axis=dim + 1).reshape(*before, extent // n, *after) for rank in range(n)]


def join(values: Sequence[Array], dim: int, block: int) -> Array:
    """The inverse of `split`."""
    shape = values[0].shape
    before, extent, after = shape[:dim], shape[dim], shape[dim + 1 :]
    stacked = np.stack([value.reshape(*before, extent // block, block, *after) for value in values], axis=dim + 1)
    return stacked.reshape(*before, extent * len(values), *after)
