"""The steps by which a device brings values into other layouts: those of the cheapest paths, or of paths that a text says.

f32[data*64]{+model} to f32[data*64]   -->   spmd.all_reduce add %0 over (model) : f32[64] -> f32[64]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, SSAValue

from ...dialects.array import Redistribute, mesh_of
from ...dialects.ground.dtypes import itemsize
from ...dialects.types import ArrayType
from ..redistribute.kinds.halo import exchanged, joint
from ..redistribute.path_text import read_path
from ..redistribute.search import Path, Step, path
from .gathered_folds import fold_parts
from .scan_blocks import Across


def way_of(op: Redistribute) -> Path | None:
    """The path that an op says; None if it says none."""
    if op.path is None:
        return None
    ((before, after),) = op.changes
    return read_path(op.path.data, before.layout, after.layout, itemsize(before.dtype), mesh_of(op))


def redistributed(
    locals: Sequence[SSAValue],
    before: Sequence[ArrayType],
    after: Sequence[ArrayType],
    block: Block,
    way: Path | None = None,
) -> list[SSAValue]:
    """Writes the steps that bring values into other layouts, at the end of a block; returns the resulting local values.

    One value may take another `way` than the cheapest.
    """
    changes = list(zip(before, after, strict=True))
    alone = [path(x.layout, y.layout, itemsize(x.dtype)) for x, y in changes] if len(changes) > 1 else ()
    if alone and (ways := joint(alone)):
        ops, made = exchanged(ways, locals)
        block.add_ops(ops)
        return made
    return [_steps(local, x, y, block, way) for local, (x, y) in zip(locals, changes, strict=True)]


def stepped(steps: Iterable[Step], local: SSAValue, block: Block) -> SSAValue:
    """Writes these steps, at the end of a block; returns the resulting local value."""
    for step in steps:
        ops = step.ops(local)
        block.add_ops(ops)
        local = ops[-1].results[0]
    return local


def _steps(local: SSAValue, type: ArrayType, wanted: ArrayType, block: Block, way: Path | None) -> SSAValue:
    if type is wanted:
        return local
    before, after = type.layout, wanted.layout
    resolved = tuple(each for each in before.pending if each not in after.pending)
    scans, sums = (tuple(each for each in resolved if each.scans is scanned) for scanned in (True, False))
    whole = before.with_pending(())

    if scans:
        across = Across(local, whole, scans[0], block)
        local = across.finish(stepped(across.steps, across.total(), block))
    folds, sums = (tuple(each for each in sums if each.is_gathered is gathered) for gathered in (True, False))
    if folds:
        local = fold_parts(local, whole, folds, block, stepped)
    if way is None or scans or folds:
        way = path(before.with_pending(sums), after.with_pending(()), itemsize(type.dtype))
    return stepped(way.steps, local, block)
