"""Operands that are positions in an array, in the form that XLA:CPU needs.

XLA merges a `dynamic_slice` with another one that it reads, and turns an update by one index vector into a `dynamic_slice`
and a `dynamic_update_slice`. In neither case does it clamp what it then adds up. And it counts in the type of the
positions, which may not reach the end of the array. So positions of narrow types are widened, and those that lie outside
never reach XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
from jax import Array
from jax import lax as lax_types

from ..jax_private import jnp, lax


def _second(_: Array, update: Array) -> Array:
    return update


SCATTERS: Mapping[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
    "scatter": (lax.scatter, _second),
    "scatter_add": (lax.scatter_add, lax.add),
    "scatter_max": (lax.scatter_max, lax.max),
    "scatter_min": (lax.scatter_min, lax.min),
    "scatter_mul": (lax.scatter_mul, lax.mul),
    "scatter_sub": (lax.scatter_sub, lax.sub),
}
"""The public function of each scatter, whose primitive has a combiner that depends on the dtype; and that combiner."""

POSITIONS: Mapping[str, slice] = {
    "dynamic_slice": slice(1, None),
    "dynamic_update_slice": slice(2, None),
    **dict.fromkeys(("gather", *SCATTERS), slice(1, 2)),
}
"""The operands of each op that hold positions."""


def widened(name: str, inputs: Sequence[Array]) -> list[Array]:
    """The operands of an op, positions of less than 32 bits as i32."""
    made, here = list(inputs), POSITIONS[name]
    made[here] = [each.astype(jnp.int32) if each.dtype.itemsize < 4 else each for each in made[here]]
    return made


def inside(name: str, inputs: Sequence[Array], window: Sequence[int], params: Mapping[str, object]) -> list[Array]:
    """The operands of an op that reads, its positions moved so that each window lies inside, where the op does that.

    A read that fills is looked up by JAX with a mask.
    """
    x, *positions = inputs
    if name == "dynamic_slice":
        return [x, *(jnp.clip(s, 0, n - w).astype(s.dtype) for s, n, w in zip(positions, np.shape(x), window, strict=True))]
    if name != "gather" or np.prod(positions[0].shape[:-1]) != 1 or params["mode"] is lax.GatherScatterMode.FILL_OR_DROP:
        return [x, *positions]
    numbers = cast(lax_types.GatherDimensionNumbers, params["dimension_numbers"])
    room = _room(x, positions[0], cast("Sequence[int]", params["slice_sizes"]), numbers.start_index_map)
    return [x, jnp.clip(positions[0], 0, room).astype(positions[0].dtype)]


def _room(array: Array, ids: Array, window: Sequence[int], dims: Sequence[int]) -> np.ndarray:
    """How far each component of the index vectors reaches, as an array that is compared with them."""
    room = np.array([array.shape[dim] - window[dim] for dim in dims], ids.dtype)
    return room.reshape((1,) * (ids.ndim - 1) + room.shape)


def scattered(name: str, acc: Array, ids: Array, updates: Array, **params: object) -> Array:
    """A scatter. An update by one vector is written over what is there, or, where it would be dropped, that over itself."""
    scatter, combine = SCATTERS[name]
    if np.prod(ids.shape[:-1]) != 1 or lax.GatherScatterMode.from_any(params["mode"]) is lax.GatherScatterMode.CLIP:
        return scatter(acc, ids, updates, **params)
    numbers = cast(lax_types.ScatterDimensionNumbers, params["dimension_numbers"])
    single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    spans = iter([updates.shape[dim] for dim in numbers.update_window_dims])
    window = tuple(1 if dim in single else next(spans) for dim in range(acc.ndim))
    lands = jnp.all((ids >= 0) & (ids <= _room(acc, ids, window, numbers.scatter_dims_to_operand_dims)))
    ids = jnp.where(lands, ids, 0)
    reads = lax.GatherDimensionNumbers(
        numbers.update_window_dims,
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )
    sure = {"indices_are_sorted": True, "unique_indices": True, "mode": lax.GatherScatterMode.PROMISE_IN_BOUNDS}
    there = lax.gather(acc, ids, reads, window, **sure)
    return lax.scatter(acc, ids, jnp.where(lands, combine(there, updates), there), numbers, **sure)
