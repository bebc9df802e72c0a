"""Running a device-local function: its named ops by their JAX primitives, its collectives by `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from xdsl.ir import Block, Operation, SSAValue

from ..dialects.array import mesh_of
from ..dialects.params import ParamsAttr
from ..dialects.types import ArrayType
from .collectives import run_collective
from .evaluate import bind_local
from .untyped import lax

Array: TypeAlias = Any


def run_local(block: Block, inputs: Sequence[Array], foreign: Sequence[object] = ()) -> list[Array]:
    """The operands of the block's terminator on one device, for its parts of the arguments."""
    env: dict[SSAValue, Array] = dict(zip(block.args, inputs, strict=True))
    for op in block.ops:
        operands = [env[value] for value in op.operands]
        if op.next_op is None:
            return operands
        env.update(zip(op.results, _run(op, operands, foreign), strict=True))
    raise AssertionError("a block ends in a terminator")


def _once(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    """An effect without results, such as a print: every device has the whole operands, and the first one alone runs it."""
    params = cast(ParamsAttr, op.properties["params"])
    first = lax.axis_index(tuple(mesh_of(op))) == 0
    lax.cond(first, lambda: bind_local("whole", params, operands, (), foreign=foreign), list)
    return []


def _run(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    if op.name.startswith("spmd."):
        return run_collective(op, operands)
    if not op.results:
        return _once(op, operands, foreign)
    params = cast(ParamsAttr, op.properties["params"])
    types = [(array.dtype, array.shape) for array in cast("Sequence[ArrayType]", op.result_types)]
    if not op.regions:
        return bind_local(op.name.removeprefix("lax."), params, operands, types, foreign=foreign)
    body = op.regions[0].block
    return bind_local("scan", params, operands, types, body=lambda values: run_local(body, values, foreign))
