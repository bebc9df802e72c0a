"""Runs the collectives of the spmd dialect by `jax.lax`, inside of a `shard_map`.

`block` is the number of local elements that stay together inside the axes. If it spans the whole dim, the collective is
JAX's tiled one. Otherwise the dim is reshaped around it, `M * block --> [M, block]`, which is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import isqrt, prod
from typing import cast

import numpy as np
from jax import Array
from jax.sharding import get_abstract_mesh
from xdsl.ir import Operation

from ...dialects import spmd
from ...dialects.array import Barrier
from ...dialects.ground.monoids import MONOIDS
from ...dialects.types import AxesAttr
from ..jax_private import jnp, lax, layout, platform
from ..ops.barrier import barrier_p
from ..ops.monoids import SPELLED


def run_collective(op: Operation, operands: Sequence[Array]) -> list[Array]:
    if isinstance(op, Barrier):
        return barrier_p.bind(*operands)
    if isinstance(op, spmd.CoordinateOp):
        return [lax.axis_index(_names(op.along))]
    assert isinstance(op, spmd.Collective)
    (x,) = operands
    if byte := BYTES.get(x.dtype.name):
        # XLA:CPU gathers two-bit numbers wrongly, so all types of less than a byte travel as bytes.
        return [_run_by_groups(op, x.astype(byte)).astype(x.dtype)]
    return [_run_by_groups(op, x)]


def _names(axes: AxesAttr) -> tuple[str, ...]:
    """The axes by their names in JAX's mesh. An axis that the mesh has only in parts is replaced by the parts."""
    known = get_abstract_mesh().axis_names
    return tuple(
        part
        for name in (axis.on_devices for axis in axes.data)
        for part in ((name,) if name in known else (each for each in known if each.startswith(f"{name}.")))
    )


def _permute(op: spmd.PermuteOp, x: Array) -> Array:
    """Permutes by `lax.ppermute`, which numbers devices in the order of the mesh's axes, not in the order of its argument."""
    sizes, order = get_abstract_mesh().shape, _names(op.over)
    axes = tuple(axis for axis in sizes if axis in order)
    numbers = np.arange(op.over.size).reshape(tuple(sizes[axis] for axis in axes))
    number = numbers.transpose([axes.index(axis) for axis in order]).ravel().tolist()
    return lax.ppermute(x, axes, [(number[source], number[target]) for source, target in op.pairs.data])


def _run_by_groups(op: spmd.Collective, x: Array) -> Array:
    match op:
        case spmd.AllReduceOp():
            return _folded(op, x, lambda x: _across(op.monoid.data)(x, _names(op.over)))
        case spmd.AllGatherOp():
            return _all_gather(op, x)
        case spmd.ReduceScatterOp():
            return _reduce_scatter(op, x)
        case spmd.AllToAllOp():
            return _all_to_all(op, x)
        case spmd.PermuteOp():
            return _permute(op, x)
        case spmd.PickOp():
            return _pick(op, x)
        case spmd.SliceOp():
            return _slice(op, x)
        case _:
            raise NotImplementedError(f"`{op.name}` has no call of JAX in `run/collectives.py`")


BYTES: Mapping[str, str] = {
    "int2": "int8",
    "int4": "int8",
    "uint2": "uint8",
    "uint4": "uint8",
    "float4_e2m1fn": "float8_e4m3fn",
}
"""Maps each type of less than a byte to a one-byte type that holds all of its numbers."""


def _folded(op: spmd.AllReduceOp | spmd.ReduceScatterOp, x: Array, fold: Callable[[Array], Array]) -> Array:
    """Folds an array over devices, in a type that JAX and XLA fold correctly."""
    if x.dtype == jnp.bool_:
        # JAX does not fold booleans over devices: they travel as bytes, which have the same size.
        return fold(x.astype(jnp.uint8)).astype(jnp.bool_)
    monoid = op.monoid.data
    if monoid in ("pick", "max", "min") and jnp.issubdtype(x.dtype, jnp.inexact) and platform() == "cpu":
        return _picked(x, fold, _group(op) - 1) if monoid == "pick" else _ordered(x, fold, monoid)
    return fold(x)


def _picked(x: Array, fold: Callable[[Array], Array], others: int) -> Array:
    """Adds an element that one device has to the -0.0 of all `others`, so that all devices get its exact bits.

    XLA:CPU starts a sum from 0.0, so a float sum would lose the sign of a zero. The bits are added as integers instead, and
    the bits of the other devices' -0.0 are subtracted. Integers wrap around, so the result is exact.
    """
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        parts = _picked(jnp.stack([x.real, x.imag], -1), fold, others)
        return lax.complex(parts[..., 0], parts[..., 1])
    bits = lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")
    absent = lax.bitcast_convert_type(jnp.asarray(-0.0, x.dtype), bits.dtype)
    return lax.bitcast_convert_type(fold(bits) - absent * np.asarray(others, bits.dtype), x.dtype)


def _ordered(x: Array, fold: Callable[[Array], Array], monoid: str) -> Array:
    """The maximum or minimum over devices; NaN if any device has NaN, which XLA:CPU would lose.

    Floats are compared by their bits as integers. The bits of negative numbers are inverted first, and NaN comes last.
    """
    whole = np.iinfo(f"int{8 * x.dtype.itemsize}")

    def turned(bits: Array) -> Array:
        return jnp.where(bits < 0, bits ^ whole.max, bits)

    keys = turned(lax.bitcast_convert_type(x, whole.dtype))
    keys = jnp.where(jnp.isnan(x), whole.dtype.type(whole.max if monoid == "max" else whole.min), keys)
    return lax.bitcast_convert_type(turned(fold(keys)), x.dtype)


@cache
def _across(monoid: str) -> Callable[..., Array]:
    """JAX's function that folds with this monoid over the devices of mesh axes."""
    return getattr(lax, SPELLED[MONOIDS[monoid].fold or "sum"].across)


def _all_gather(op: spmd.AllGatherOp, x: Array) -> Array:
    dim, block = op.number("dim"), op.number("block")
    if x.shape[dim] == block:
        gathered = lax.all_gather(x, _names(op.over), axis=dim, tiled=True)
        # XLA:TPU stores the blocks one after another, which a product that reads them may prefer. An elementwise op would then
        # copy all other operands and its results, such as a parameter and the optimizer's state.
        return gathered if prod(x.shape[:dim]) == 1 or platform() != "tpu" or _is_in_product(op) else row_major(gathered)
    apart = _split_dim(x, dim, block)
    return _merge_dims(lax.all_gather(apart, _names(op.over), axis=dim + 1), dim, 3)


def row_major(array: Array) -> Array:
    """An array that XLA stores row by row."""
    return cast(Array, layout.with_layout_constraint(array, layout.Layout((*range(array.ndim),))))


def _is_in_product(op: spmd.AllGatherOp) -> bool:
    return any(use.operation.name == "lax.dot_general" for use in op.results[0].uses)


def _reduce_scatter(op: spmd.ReduceScatterOp, x: Array) -> Array:
    dim, block, group = op.number("dim"), op.number("block"), _group(op)
    if x.shape[dim] == block * group:
        return _folded(op, x, lambda x: _scatter(op, x, dim, tiled=True))
    apart = _split_dim(x, dim, group, block)
    return _merge_dims(_folded(op, apart, lambda x: _scatter(op, x, dim + 1, tiled=False)), dim, 2)


SCATTERS = 8
"""The largest group over which XLA:TPU runs a reduce_scatter. Over more devices, it compiles an all_reduce instead."""


def _scatter(op: spmd.ReduceScatterOp, x: Array, dim: int, tiled: bool) -> Array:
    """A reduce_scatter with sums. Over many TPUs it is two in a row, which together send the same bytes.

    16 devices   -->   groups of 4 whose parts lie furthest apart, and then groups of 4 neighbours
    """
    group = _group(op)
    if platform() != "tpu" or group <= SCATTERS:
        return lax.psum_scatter(x, _names(op.over), scatter_dimension=dim, tiled=tiled)
    phases = [(axis, None, get_abstract_mesh().shape[axis]) for axis in _names(op.over)]
    if len(phases) == 1:
        ((axis, *_),) = phases
        major = max(size for size in range(1, isqrt(group) + 1) if group % size == 0)
        numbers = np.arange(group).reshape(major, -1)
        phases = [(axis, numbers.T.tolist(), major), (axis, numbers.tolist(), group // major)]
    sizes = [size for _, _, size in phases]
    if not tiled:
        x = x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])
    for axis, groups, size in phases:
        if size > 1:
            x = lax.psum_scatter(x, axis, scatter_dimension=dim, tiled=tiled, axis_index_groups=groups)
        elif not tiled:
            x = x.squeeze(dim)
    return x


def _slice(op: spmd.SliceOp, x: Array) -> Array:
    dim, block, group = op.number("dim"), op.number("block"), _group(op)
    index = lax.axis_index(_names(op.over))
    if x.shape[dim] == block * group:
        return lax.dynamic_slice_in_dim(x, index * block, block, dim)
    apart = _split_dim(x, dim, group, block)
    return _merge_dims(lax.dynamic_index_in_dim(apart, index, dim + 1, keepdims=False), dim, 2)


def _pick(op: spmd.PickOp, x: Array) -> Array:
    """Takes this device's rows. A table lists the rows of each device or, if they are consecutive, their first rows."""
    dim, rows, index = op.number("dim"), op.rows.data, lax.axis_index(_names(op.over))
    are_runs = all(each == tuple(range(each[0], each[0] + len(each))) for each in rows)
    table = np.array([each[0] for each in rows] if are_runs else rows)
    mine = lax.dynamic_index_in_dim(table.astype(np.min_scalar_type(x.shape[dim])), index, keepdims=False).astype(jnp.int32)
    if are_runs:
        return lax.dynamic_slice_in_dim(x, mine, len(rows[0]), dim)
    return jnp.take(x, mine, axis=dim, mode="clip")


def _all_to_all(op: spmd.AllToAllOp, x: Array) -> Array:
    split, concat, group = op.number("split"), op.number("concat"), _group(op)
    block, into = op.number("split_block"), op.number("concat_block")
    if split != concat and x.shape[split] == block * group and x.shape[concat] == into:
        # XLA:TPU would split the dim in the op before too: what that reads, another reader could no longer compute by itself.
        return lax.all_to_all(*barrier_p.bind(x), _names(op.over), split, concat, tiled=True)
    apart = jnp.moveaxis(_split_dim(x, split, group, block), split + 1, 0)
    sent = _merge_dims(lax.all_to_all(apart, _names(op.over), 0, 0), split + 1, 2)
    received = jnp.moveaxis(_split_dim(sent, concat + 1, into), 0, concat + 1)
    return _merge_dims(received, concat, 3)


def _group(op: spmd.Collective) -> int:
    return op.over.size


def _split_dim(x: Array, dim: int, *blocks: int) -> Array:
    """Splits a dim: `M * block --> [M, block]`."""
    shape = x.shape
    return x.reshape(*shape[:dim], shape[dim] // prod(blocks), *blocks, *shape[dim + 1 :])


def _merge_dims(x: Array, dim: int, count: int) -> Array:
    """Merges `count` dims, from `dim` on, into one."""
    shape = x.shape
    return x.reshape(*shape[:dim], prod(shape[dim : dim + count]), *shape[dim + count :])
