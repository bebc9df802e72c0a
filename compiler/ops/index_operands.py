"""Prepares operands that are positions in an array, as XLA:CPU needs them.

XLA merges a `dynamic_slice` with another one that it reads, and turns an update by one index vector into a `dynamic_slice` and
a `dynamic_update_slice`. In neither case does it clamp the sum of the positions. It also computes in the dtype of the
positions, which may be too narrow for the end of the array. So positions of narrow dtypes are widened, and positions outside of
the array never reach XLA.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import cast

import numpy as np
from jax import Array, lax as lax_types

from ...dialects.definitions.front_ends.gather import DimensionNumbers
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Apply, Fold, Read
from ..jax_private import jnp, lax
from .monoids import SPELLED

Combine = Callable[[Array, Array], Array]


@cache
def combiner(name: str) -> Combine:
    """The function by which a scatter combines an element with its update, as its definition has it."""
    match definitions[name].body:
        case Apply(function, (Read(), Fold(fold))):
            # `maximum` is the name that the monoid `max` has between two elements.
            return getattr(lax, function, SPELLED[fold].combine)
        case _:
            return lambda _, update: update


def widened(starts: range, inputs: Sequence[Array]) -> list[Array]:
    """Converts positions of less than 32 bits among an op's operands to i32."""
    return [x.astype(jnp.int32) if at in starts and x.dtype.itemsize < 4 else x for at, x in enumerate(inputs)]


def clamped(name: str, inputs: Sequence[Array], window: Sequence[int], params: Mapping[str, object]) -> list[Array]:
    """Clamps the positions of a reading op so that each window lies inside of the array, where the op does so itself.

    A read that fills is looked up by JAX with a mask.
    """
    x, *positions = inputs
    if name == "dynamic_slice":
        return [x, *(jnp.clip(s, 0, n - w).astype(s.dtype) for s, n, w in zip(positions, np.shape(x), window, strict=True))]
    if name != "gather" or np.prod(positions[0].shape[:-1]) != 1 or params["mode"] is lax.GatherScatterMode.FILL_OR_DROP:
        return [x, *positions]
    numbers = DimensionNumbers(*cast(DimensionNumbers, params["dimension_numbers"]))
    room = _room(x, positions[0], cast("Sequence[int]", params["slice_sizes"]), numbers.moved)
    return [x, jnp.clip(positions[0], 0, room).astype(positions[0].dtype)]


def _room(array: Array, ids: Array, window: Sequence[int], dims: Sequence[int]) -> np.ndarray:
    """The greatest valid value of each component of the index vectors, in a shape that broadcasts with them."""
    room = np.array([array.shape[dim] - window[dim] for dim in dims], ids.dtype)
    return room.reshape((1,) * (ids.ndim - 1) + room.shape)


def scattered(name: str, acc: Array, ids: Array, updates: Array, **params: object) -> Array:
    """Runs a scatter.

    With a single index vector it is a gather, then a scatter that replaces. If the mode drops the update, the old values
    are written.
    """
    if np.prod(ids.shape[:-1]) != 1 or lax.GatherScatterMode.from_any(params["mode"]) is lax.GatherScatterMode.CLIP:
        return getattr(lax, name)(acc, ids, updates, **params)
    said = cast(lax_types.ScatterDimensionNumbers, params["dimension_numbers"])
    numbers = DimensionNumbers(*cast(DimensionNumbers, said))
    window = numbers.widths(acc.ndim, updates.shape)
    lands = jnp.all((ids >= 0) & (ids <= _room(acc, ids, window, numbers.moved)))
    ids = jnp.where(lands, ids, 0)
    sure = {"indices_are_sorted": True, "unique_indices": True, "mode": lax.GatherScatterMode.PROMISE_IN_BOUNDS}
    there = lax.gather(acc, ids, lax.GatherDimensionNumbers(*numbers), window, **sure)
    return lax.scatter(acc, ids, jnp.where(lands, combiner(name)(there, updates), there), said, **sure)
