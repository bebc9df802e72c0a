"""The gradient of a maximum or minimum over windows: each window's cotangent goes to the first of its best elements.

Every element asks the windows that it is in, at most `ceil(width / stride)` of them along a dim, whether they chose it. So the
gradient reads through windows, and is tiled as other ops that do.

    select_and_scatter_add {width 2, stride 2} %g, %x   -->   %p = position of the best of %x[2i], %x[2i + 1]
                                                              select(repeat(%p, 2) == iota, repeat(%g, 2), 0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np
from jax import Array
from jax.extend.core import JaxprEqn
from jax.typing import ArrayLike

from ..jax_private import jnp, lax
from .custom_reduce import Arrays, where_there

FEW = 16
"""The most elements of a window. An op with larger windows is not expanded: its dims under the window run unpartitioned."""


def select_and_scatter_add(eqn: JaxprEqn) -> Callable[[Array, Array], Array] | None:
    """Takes the cotangents of the windows, then the array under the windows."""
    named = (eqn.params[name] for name in ("window_dimensions", "window_strides", "padding"))
    window = [(dim, *each) for dim, each in enumerate(zip(*named, strict=True)) if each != (1, 1, (0, 0))]
    counts, shape = (cast("tuple[int, ...]", cast(Any, atom.aval).shape) for atom in eqn.invars)
    if not window or not prod(counts) or prod(width for _, width, _, _ in window) > FEW:
        return None
    return _Pool(tuple(window), shape, counts, eqn.params["select_prim"].bind).gradient


@dataclass(frozen=True, slots=True)
class _Pool:
    """Windows over an array: dim, width, stride and padding of each dim under the window; `better` compares two elements."""

    window: tuple[tuple[int, int, int, tuple[int, int]], ...]
    shape: tuple[int, ...]
    counts: tuple[int, ...]
    better: Callable[[Array, Array], Array]

    def gradient(self, cotangents: Array, x: Array) -> Array:
        places, zero = self.places(), np.zeros((), cotangents.dtype)
        asked = [(self.chosen(x, places), cotangents)]
        for dim, width, stride, (lo, _) in self.window:
            near = range(-(-width // stride))
            asked = [
                (self.spread(chosen, np.int32(-1), dim, stride, lo, back), self.spread(given, zero, dim, stride, lo, back))
                for chosen, given in asked
                for back in near
            ]
        nothing = lax.full(self.shape, zero)
        return reduce(lax.add, (lax.select(lax.eq(chosen, places), given, nothing) for chosen, given in asked), nothing)

    def places(self) -> Array:
        """The position of each element in the dims under the window, as one number."""
        found = lax.full(self.shape, np.int32(0))
        for dim, *_ in self.window:
            found = found * np.int32(self.shape[dim]) + lax.broadcasted_iota(np.int32, self.shape, dim)
        return found

    def chosen(self, x: Array, places: Array) -> Array:
        """The position of the best element of each window, of equal ones the first in row-major order; -1 in padding alone."""
        fold, arrays = self.best, [x, places]
        edges = {dim: padding for dim, _, _, padding in self.window}
        if any(padding != (0, 0) for padding in edges.values()):
            units = (lax.full(self.shape, True), np.False_), (x, np.zeros((), x.dtype)), (places, np.int32(-1))
            fold, arrays = where_there(fold), [_pad(array, unit, edges) for array, unit in units]
        elements = (self.slices(arrays, at) for at in product(*(range(width) for _, width, _, _ in self.window)))
        return reduce(fold, elements)[-1]

    def best(self, left: Arrays, right: Arrays) -> Arrays:
        keep = self.better(left[0], right[0])
        return [lax.select(keep, one, other) for one, other in zip(left, right, strict=True)]

    def slices(self, arrays: Arrays, at: tuple[int, ...]) -> Arrays:
        """The element at this position of each window."""
        for start, (dim, _, stride, _) in zip(at, self.window, strict=True):
            end = start + (self.counts[dim] - 1) * stride + 1
            arrays = [lax.slice_in_dim(array, start, end, stride, dim) for array in arrays]
        return arrays

    def spread(self, array: Array, outside: ArrayLike, dim: int, stride: int, lo: int, back: int) -> Array:
        """For each element of a dim, what the window has that begins at or before it, or the one so many windows back."""
        windows, rest = divmod(lo, stride)
        blocks, first = -(-(self.shape[dim] + rest) // stride), back - windows
        moved = jnp.repeat(_pad(array, outside, {dim: (first, blocks - self.counts[dim] - first)}), stride, dim)
        return _pad(moved, outside, {dim: (-rest, self.shape[dim] + rest - blocks * stride)})


def _pad(array: Array, outside: ArrayLike, edges: Mapping[int, tuple[int, int]]) -> Array:
    """The array with so many elements more, or fewer, before and after it in these dims."""
    if not any(any(edge) for edge in edges.values()):
        return array
    return lax.pad(array, outside, [(*edges.get(dim, (0, 0)), 0) for dim in range(len(array.shape))])
