"""The gradient of a maximum or minimum over windows: a window's cotangent goes to the first of its best elements.

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

from ..jax_private import lax
from ..ops.store_once import stored

LARGEST_WINDOW = 16
"""The most elements of a window. With larger windows the op is not expanded, and its windowed dims run unpartitioned."""


def select_and_scatter_add(eqn: JaxprEqn) -> Callable[[Array, Array], Array] | None:
    """A function of the windows' cotangents and the array that computes the gradient; None if the op is not expanded."""
    named = (eqn.params[name] for name in ("window_dimensions", "window_strides", "padding"))
    window = [(dim, *each) for dim, each in enumerate(zip(*named, strict=True)) if each != (1, 1, (0, 0))]
    counts, shape = (cast("tuple[int, ...]", cast(Any, atom.aval).shape) for atom in eqn.invars)
    if not window or not prod(counts) or prod(width for _, width, _, _ in window) > LARGEST_WINDOW:
        return None
    return _Pool(tuple(window), shape, counts, eqn.params["select_prim"].bind).gradient


@dataclass(frozen=True, slots=True)
class _Pool:
    """Windows over an array: dim, width, stride and padding of each windowed dim. `better` compares two elements."""

    window: tuple[tuple[int, int, int, tuple[int, int]], ...]
    shape: tuple[int, ...]
    counts: tuple[int, ...]
    better: Callable[[Array, Array], Array]

    def gradient(self, cotangents: Array, x: Array) -> Array:
        places, zero = self.places(), np.zeros((), cotangents.dtype)
        asked = [(stored(self.chosen(x)), cotangents)]
        for dim, width, stride, (lo, _) in self.window:
            near = [(dim, stride, lo, back, min(stride, width - back * stride)) for back in range(-(-width // stride))]
            asked = [
                (self.spread(chosen, np.int32(-1), *each), self.spread(given, zero, *each))
                for chosen, given in asked
                for each in near
            ]
        nothing = lax.full(self.shape, zero)
        return reduce(lax.add, (lax.select(lax.eq(chosen, places), given, nothing) for chosen, given in asked), nothing)

    def places(self) -> Array:
        """The position of each element in the windowed dims, as one number."""
        return self.numbered(self.shape, {dim: (1, 0) for dim, *_ in self.window})

    def numbered(self, shape: tuple[int, ...], along: Mapping[int, tuple[int, int]]) -> Array:
        """The position of element `step * i + first` of each dim, for all i, as one number."""
        found = lax.full(shape, np.int32(0))
        for dim, (step, first) in along.items():
            own = lax.broadcasted_iota(np.int32, shape, dim) * np.int32(step) + np.int32(first)
            found = found * np.int32(self.shape[dim]) + own
        return found

    def chosen(self, x: Array) -> Array:
        """The position of the best element of each window, the first of equal ones in row-major order; -1 if all is padding."""
        ends = {dim: (self.counts[dim] - 1) * stride + width - lo for dim, width, stride, (lo, _) in self.window}
        edges = {dim: (lo, ends[dim] - self.shape[dim]) for dim, _, _, (lo, _) in self.window}
        padded = _pad(x, np.zeros((), x.dtype), edges)
        offsets = [*product(*(range(width) for _, width, _, _ in self.window))]
        best, position, found = self.slice(padded, offsets[0]), self.position(offsets[0]), self.inside(offsets[0])
        if found is not None:
            position = lax.select(found, position, lax.full(self.counts, np.int32(-1)))
        for at in offsets[1:]:
            element, here = self.slice(padded, at), self.inside(at)
            keep = self.better(best, element)
            if found is not None:
                keep = lax.bitwise_and(keep, found)
            if here is not None:
                keep = lax.bitwise_or(keep, lax.bitwise_not(here))
            best, position = lax.select(keep, best, element), lax.select(keep, position, self.position(at))
            found = None if found is None or here is None else lax.bitwise_or(found, here)
        return position

    def position(self, at: tuple[int, ...]) -> Array:
        """The position of the element at this place of each window."""
        return self.numbered(
            self.counts, {dim: (stride, start - lo) for start, (dim, _, stride, (lo, _)) in zip(at, self.window, strict=True)}
        )

    def inside(self, at: tuple[int, ...]) -> Array | None:
        """A mask of the windows whose element at this place belongs to the array, and is no padding; None if all do."""
        found: Array | None = None
        for start, (dim, _, stride, (lo, _)) in zip(at, self.window, strict=True):
            first, last = start - lo, start - lo + (self.counts[dim] - 1) * stride
            if first < 0 or last >= self.shape[dim]:
                own = lax.broadcasted_iota(np.int32, self.counts, dim) * np.int32(stride) + np.int32(first)
                each = lax.bitwise_and(lax.ge(own, np.int32(0)), lax.lt(own, np.int32(self.shape[dim])))
                found = each if found is None else lax.bitwise_and(found, each)
        return found

    def slice(self, array: Array, at: tuple[int, ...]) -> Array:
        """The element at this place of each window."""
        for start, (dim, _, stride, _) in zip(at, self.window, strict=True):
            array = lax.slice_in_dim(array, start, start + (self.counts[dim] - 1) * stride + 1, stride, dim)
        return array

    def spread(self, array: Array, outside: ArrayLike, dim: int, stride: int, lo: int, back: int, near: int) -> Array:
        """For each element of a dim, the value of the last window that begins at or before it, or `back` windows earlier.

        That window has the first `near` of `stride` elements. The others get `outside`. They lie before the window's or after
        them, so that its block of `stride` elements begins at a multiple of `stride`, if that is possible.

        ```
        width 3, stride 2, padding 1: elements 2i and 2i + 1   -->   windows i and i + 1, or one earlier: none and i
        ```
        """
        before = min(-lo % stride, stride - near)
        windows, rest = divmod(lo + before, stride)
        blocks, first = -(-(self.shape[dim] + rest) // stride), back - windows
        moved = _pad(array, outside, {dim: (first, blocks - self.counts[dim] - first)})
        shape, others = moved.shape, [at + (at > dim) for at in range(len(moved.shape))]
        each = lax.broadcast_in_dim(moved, (*shape[: dim + 1], near, *shape[dim + 1 :]), others)
        every = lax.collapse(_pad(each, outside, {dim + 1: (before, stride - near - before)}), dim, dim + 2)
        return _pad(every, outside, {dim: (-rest, self.shape[dim] + rest - blocks * stride)})


def _pad(array: Array, outside: ArrayLike, edges: Mapping[int, tuple[int, int]]) -> Array:
    """Pads or crops an array by this many elements before and after it, in these dims."""
    if not any(any(edge) for edge in edges.values()):
        return array
    return lax.pad(array, outside, [(*edges.get(dim, (0, 0)), 0) for dim in range(len(array.shape))])
