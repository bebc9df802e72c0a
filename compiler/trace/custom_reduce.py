"""Folds with a combiner of the user's: `lax.reduce` and `lax.reduce_window` of several arrays at once.

The combiner is associative and the initial value its unit, so the fold may be taken in any order: in halves, each combined
elementwise. All dims that are not folded stay plain indices.

    reduce {computation} %x, %init   -->   %a = slice %x [0:4];  %b = slice %x [4:8];  combiner(%a, %b), and so on
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from jax import Array
from jax.extend.core import ClosedJaxpr, JaxprEqn, jaxpr_as_fun

from ..jax_private import jax, lax

Arrays: TypeAlias = Sequence[Array]
Combine: TypeAlias = Callable[[Arrays, Arrays], Arrays]

FEW = 8
"""Up to so many elements a window is combined from slices one by one; a larger one doubles from windows of half its size."""


def reduce(eqn: JaxprEqn) -> Callable[..., Arrays]:
    """The rule of `reduce`: operands, then as many initial values."""
    closed, dims = eqn.params["jaxpr"], eqn.params["dimensions"]

    def reduced(*values: Array) -> Arrays:
        arrays, units = values[: len(values) // 2], values[len(values) // 2 :]
        for dim in dims:
            arrays = _folded(_combiner(closed, len(arrays[0].shape)), arrays, units, dim)
        arrays = [lax.squeeze(array, dims) for array in arrays]
        shape = arrays[0].shape
        return _combiner(closed, len(shape))([lax.broadcast(unit, shape) for unit in units], arrays)

    return reduced


def _folded(combine: Combine, arrays: Arrays, units: Arrays, dim: int) -> Arrays:
    """Folds a dim to extent 1."""
    while (extent := arrays[0].shape[dim]) != 1:
        if extent % 2 or not extent:
            arrays = [_padded(array, unit, dim) for array, unit in zip(arrays, units, strict=True)]
        half = (extent + 1) // 2
        arrays = combine(*(_each(arrays, dim, start, half or 1) for start in ((0, half) if half else (0, 0))))
    return arrays


def _padded(array: Array, unit: Array, dim: int) -> Array:
    return lax.pad(array, unit, [(0, int(at == dim), 0) for at in range(array.ndim)])


def _each(arrays: Arrays, dim: int, start: int, length: int, stride: int = 1) -> Arrays:
    """`length` elements along a dim of each array."""
    return [lax.slice_in_dim(array, start, start + (length - 1) * stride + 1, stride, dim) for array in arrays]


def _combiner(closed: ClosedJaxpr, rank: int) -> Combine:
    """The combiner of scalars, elementwise on arrays of this rank."""
    function = cast("Callable[..., Arrays]", jaxpr_as_fun(closed))
    for _ in range(rank):
        function = cast("Callable[..., Arrays]", jax.vmap(function))

    def combined(left: Arrays, right: Arrays) -> Arrays:
        return function(*left, *right)

    return combined


def reduce_window(eqn: JaxprEqn) -> Callable[..., Arrays]:
    """The rule of `reduce_window`: pads the operands, then takes one windowed dim after another."""
    params = eqn.params
    closed = ClosedJaxpr(params["jaxpr"], params["consts"])
    dims = [*zip(*(params[name] for name in ("window_dimensions", "window_dilation", "window_strides")), strict=True)]
    edges = [(lo, hi, base - 1) for (lo, hi), base in zip(params["padding"], params["base_dilation"], strict=True)]

    def reduced(*values: Array) -> Arrays:
        arrays, units = values[: len(values) // 2], values[len(values) // 2 :]
        combine = _combiner(closed, len(dims))
        if any(edge != (0, 0, 0) for edge in edges):
            arrays = [lax.pad(array, unit, edges) for array, unit in zip(arrays, units, strict=True)]
        for dim, (width, dilation, stride) in enumerate(dims):
            count = max(0, (arrays[0].shape[dim] - (width - 1) * dilation - 1) // stride + 1)
            if not count:
                shape = [*arrays[0].shape[:dim], 0, *arrays[0].shape[dim + 1 :]]
                arrays = [lax.broadcast(unit, shape) for unit in units]
            elif width > 1 or stride > 1:
                arrays = _windows(combine, arrays, dim, width, dilation, stride, count)
        return combine([lax.broadcast(unit, arrays[0].shape) for unit in units], arrays)

    return reduced


def _windows(combine: Combine, arrays: Arrays, dim: int, width: int, dilation: int, stride: int, count: int) -> Arrays:
    """`count` windows along one dim, each `width` elements that lie `dilation` apart."""
    if width <= FEW:
        found = _each(arrays, dim, 0, count, stride)
        for place in range(1, width):
            found = combine(found, _each(arrays, dim, place * dilation, count, stride))
        return found
    half = width // 2
    # The left half's window ends where the right half's begins; an odd width leaves one element more to the right.
    span = (count - 1) * stride + 1
    both = _windows(combine, arrays, dim, half, dilation, 1, span + half * dilation)
    found = combine(_each(both, dim, 0, count, stride), _each(both, dim, half * dilation, count, stride))
    return combine(found, _each(arrays, dim, 2 * half * dilation, count, stride)) if width % 2 else found
