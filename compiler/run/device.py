"""Running a device-local function: its named ops by their JAX primitives, its collectives by `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from jax import Array
from xdsl.ir import Block, Operation

from ...dialects.array import mesh_of
from ...dialects.params import ParamsAttr
from ..jax_private import lax
from ..ops.bind import bind_local, run_block, run_op
from .collectives import run_collective


def run_local(block: Block, inputs: Sequence[Array], foreign: Sequence[object] = ()) -> list[Array]:
    """The operands of the block's terminator on one device, for its parts of the arguments."""
    return run_block(block, inputs, foreign, _run)


def _run(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    if op.name.startswith("spmd."):
        return run_collective(op, operands)
    if not op.results:
        return _once(op, operands, foreign)
    return run_op(op, operands, foreign, _run)


def _once(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    """An effect without results, such as a print: every device has the whole operands, and the first one alone runs it."""
    params = cast(ParamsAttr, op.properties["params"])
    first = lax.axis_index(tuple(mesh_of(op))) == 0
    lax.cond(first, lambda: bind_local("whole", params, operands, (), foreign=foreign), list)
    return []
