"""Runs a device-local function: its named ops by JAX primitives, its collectives by `jax.lax`."""

from collections.abc import Sequence
from typing import cast

from jax import Array
from xdsl.ir import Block, Operation

from ...dialects.array import mesh_of
from ...dialects.ground.errors import Error, first_line
from ...dialects.params import ParamsAttr
from ...dialects.types import ArrayType
from ...rewrites.program.shard_maps import own_axes
from ..jax_private import jnp, lax
from ..ops.bind import run_block, run_op
from .callbacks import is_callback, kept
from .collectives import row_major, run_collective
from .extended_shard_map import mesh_text


def run_local(block: Block, inputs: Sequence[Array], foreign: Sequence[object] = ()) -> list[Array]:
    """Runs a block on one device's parts of the arguments, and returns the operands of its terminator."""
    return run_block(block, inputs, foreign, _run)


def _run(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    if op.name.startswith("spmd."):
        return run_collective(op, operands)
    params = cast(ParamsAttr, op.properties["params"])
    if is_callback(op):
        foreign = kept(op, foreign)
    if params.get("once") and params.get("placed"):
        return _once(op, operands, foreign)
    if "own_axes" in params and not params.get("placed"):
        return _mapped(op, operands, foreign)
    found = run_op(op, operands, foreign)
    # XLA transforms only what is stored row by row, and fails where a collective wants the result in another order.
    return [*map(row_major, found)] if op.name == "lax.fft" else found


def _mapped(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    """Runs a `shard_map` whose mesh is not the plan's, by `jax.vmap`. Raises Error if JAX cannot map its body."""
    try:
        return run_op(op, operands, foreign)
    except (NotImplementedError, ValueError, TypeError) as error:
        axes, mesh = own_axes(cast(ParamsAttr, op.properties["params"])), mesh_of(op)
        own = mesh_text(axes)
        raise Error(
            f"a `shard_map` of the program is on the mesh {own}, the plan is for the mesh {mesh}, and JAX cannot run it there",
            notes=[
                "on a mesh without its axes it runs through `jax.vmap` on replicated arrays",
                f"JAX says: {first_line(error)}",
            ],
            helps=[f"plan for a mesh that has its axes: pt.Mesh({own})", "or write it with ops that `jax.vmap` can map"],
        ) from error


def _once(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    """Runs an op on the first device only. Its operands are replicated, and the other devices return zeros."""
    first = lax.axis_index(tuple(mesh_of(op))) == 0
    types = cast("Sequence[ArrayType]", op.result_types)
    zeros = lambda: [jnp.zeros(type.shape, type.dtype) for type in types]  # noqa: E731
    return list(lax.cond(first, lambda: run_op(op, operands, foreign), zeros))
