"""A `jax.shard_map` in the user's program: its body runs unchanged, on the axes that it names.

If these are axes of the plan's mesh, the body runs on its devices, with its own collectives. Otherwise the global arrays are
split into the blocks that the body needs, and `jax.vmap` runs it on all of them, with a mapped axis for each mesh axis.
Collectives for which JAX has no rule there are written with others (`mapped_collectives.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import cast

import numpy as np
from jax import Array
from jax.sharding import PartitionSpec
from xdsl.ir import Block, Operation

from ...dialects.lax import params_of
from ...dialects.params import ParamsAttr, Record
from ...rewrites.program.run_counts import Marks, executions
from ..jax_private import jax
from .mapped_collectives import has_rule, run_under_vmap
from .params import foreign_at

BodyFunction = Callable[..., Sequence[Array]]
Spec = tuple[tuple[str, ...], ...]
RunBlock = Callable[[Block, Sequence[Array], Sequence[object]], list[Array]]
"""Runs a block of ops on these values of its arguments. The last argument holds the parameters that have no text."""
RunOp = Callable[[Operation, Sequence[Array], Sequence[object]], list[Array]]
"""Runs one op without regions. The last argument holds the parameters that have no text."""


@dataclass(frozen=True, slots=True, eq=False)
class ShardMapBody:
    """The imported body of a `shard_map`, with the arrays that it captures and its parameters that have no text."""

    block: Block
    arrays: tuple[Array, ...]
    foreign: Sequence[object]

    def run(self, run_block: RunBlock, *inputs: Array) -> list[Array]:
        """Runs the body on one block of each operand, where its axes are bound."""
        return run_block(self.block, [*inputs, *self.arrays], self.foreign)


def dims_of(spec: PartitionSpec, rank: int) -> Spec:
    """Converts a PartitionSpec to the axes of each dim, major to minor."""
    each = [() if dim is None else (dim,) if isinstance(dim, str) else tuple(dim) for dim in spec]
    return (*each, *((),) * (rank - len(each)))


NAMES_IN_JAX: Mapping[str, str] = {
    **dict.fromkeys(("psum", "pmax", "pmin", "unreduced_psum", "unreduced_pmax", "unreduced_pmin"), "all_reduce"),
    **dict.fromkeys(("all_gather", "all_gather_invariant", "all_gather_reduced"), "all_gather"),
    **dict.fromkeys(("reduce_scatter", "unreduced_reduce_scatter"), "reduce_scatter"),
    **dict.fromkeys(("all_to_all", "ragged_all_to_all"), "all_to_all"),
    **dict.fromkeys(("ppermute", "pbroadcast", "pbroadcast_dynamic"), "permute"),
}
"""JAX's collectives, each with the kind that counts use."""


def on_devices(op: Operation) -> bool:
    """Whether an op of a device-local function is a `shard_map` whose body runs on the devices of the mesh."""
    params = op.properties.get("params")
    return isinstance(params, ParamsAttr) and bool(params.get("placed"))


def own_collectives(maps: Iterable[tuple[Operation, int, str]], foreign: Sequence[object]) -> Iterator[tuple[str, int, str]]:
    """Yields the collectives in the bodies of `shard_map`s that run on devices, as (kind, times, where), one for each array.

    `maps` has, for each, how often it runs and where. Loops and `cond`s in the bodies are marked `own.while#0`.
    """
    marks = Marks("own.")
    for op, times, where in maps:
        params = params_of(op)
        if "body" not in params:
            continue  # An op that runs once is placed on the mesh too.
        for each, count, at in executions(_body(params, foreign).block, marks, times, where):
            primitive = params_of(each).get("primitive") if each.name == "lax.whole" else ""
            if kind := NAMES_IN_JAX.get(str(primitive)):
                yield from ((kind, count, at) for _ in each.operands)


def _body(params: ParamsAttr, foreign: Sequence[object]) -> ShardMapBody:
    return cast(ShardMapBody, foreign_at(cast(Record, params["body"]), foreign))


def run_mapped(
    params: ParamsAttr, inputs: Sequence[Array], foreign: Sequence[object], run_block: Callable[..., list[Array]], run_op: RunOp
) -> list[Array]:
    """Runs a `shard_map` op, on the arrays of one device or on global arrays.

    `run_block` runs a block, with another function than `run_op` for its ops if it is given one.
    """
    body = _body(params, foreign)
    if params.get("placed"):
        return body.run(run_block, *inputs)
    axes = dict(cast("tuple[tuple[str, int], ...]", params["own_axes"]))

    def run_one(op: Operation, operands: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
        how = dict(params_of(op).items())
        primitive = str(how.get("primitive"))
        if op.name != "lax.whole" or has_rule(primitive, how):
            return run_op(op, operands, foreign)
        return [run_under_vmap(primitive, how, each, tuple(axes)) for each in operands]

    run = partial(run_block, run=run_one)
    specs = cast("tuple[Spec, ...]", params["in_specs"]), cast("tuple[Spec, ...]", params["out_specs"])
    blocks = [_cut(x, spec, axes) for x, spec in zip(inputs, specs[0], strict=True)]
    function: BodyFunction = partial(body.run, run)
    for axis, size in reversed(axes.items()):
        mapped = [0 if any(axis in dim for dim in spec) else None for spec in specs[0]]
        function = _over(function, axis, size, mapped)
    return [_join_blocks(y, spec, axes) for y, spec in zip(function(*blocks), specs[1], strict=True)]


def _over(function: BodyFunction, axis: str, size: int, mapped: Sequence[int | None]) -> BodyFunction:
    """Maps the function over one axis, even if none of its operands is partitioned along it."""

    def run(*inputs: Array) -> list[Array]:
        # An extra operand, so that at least one is mapped.
        def one(_: Array, *given: Array) -> Sequence[Array]:
            return function(*given)

        counted = jax.numpy.arange(size)
        return jax.vmap(one, in_axes=(0, *mapped), out_axes=0, axis_name=axis, axis_size=size)(counted, *inputs)

    return run


def _order(spec: Spec, axes: Iterable[str]) -> list[int]:
    """The dims of a cut array in the order of its blocks: those of the axes, in the order of these, then the local ones.

    A cut array has for each dim those of the axes that cut it, and then the local one.
    """
    each = [name for dim in spec for name in (*dim, None)]
    return [*(each.index(axis) for axis in axes if axis in each), *(at for at, name in enumerate(each) if name is None)]


def _cut(x: Array, spec: Spec, axes: Mapping[str, int]) -> Array:
    """Cuts an array into blocks: the result has a leading dim for each axis that it is cut along, in the order of the axes."""
    shape: list[int] = []
    for extent, placed in zip(x.shape, spec, strict=True):
        sizes = [axes[axis] for axis in placed]
        shape += [*sizes, extent // prod(sizes)]
    return jax.numpy.transpose(x.reshape(shape), _order(spec, axes))


def _join_blocks(y: Array, spec: Spec, axes: Mapping[str, int]) -> Array:
    """Joins blocks to the whole array. Along axes that the spec does not name, all blocks are equal, and the first is used."""
    named = [axis for dim in spec for axis in dim]
    first = y[tuple(slice(None) if axis in named else 0 for axis in axes)]
    local = first.shape[len(named) :]
    shape = [extent * prod(axes[axis] for axis in placed) for extent, placed in zip(local, spec, strict=True)]
    return jax.numpy.transpose(first, np.argsort(_order(spec, axes)).tolist()).reshape(shape)
