"""Folds with a user's combiner: `lax.reduce` and `lax.reduce_window` of several arrays together.

The combiner is associative and commutative, so the fold can run in any order: in halves, which are combined elementwise.
The initial value counts once. All other dims stay plain indices.

    reduce {computation} %x, %init   -->   %a = slice %x [0:4];  %b = slice %x [4:8];  ..., combiner(%init, ...)
"""

from collections.abc import Callable, Sequence
from typing import cast

from jax import Array
from jax.extend.core import ClosedJaxpr, JaxprEqn, jaxpr_as_fun

from ..jax_private import jax, lax

Arrays = Sequence[Array]
Combine = Callable[[Arrays, Arrays], Arrays]

SMALL_WINDOW = 8
"""Windows of up to this many elements are combined from slices one by one. A larger window is built from two halves."""


def reduce(eqn: JaxprEqn) -> Callable[..., Arrays]:
    """A function that does the fold. It takes the operands, then as many initial values."""
    closed, dims = eqn.params["jaxpr"], cast("tuple[int, ...]", eqn.params["dimensions"])

    def reduced(*values: Array) -> Arrays:
        arrays, initial = values[: len(values) // 2], values[len(values) // 2 :]
        shape = tuple(extent for dim, extent in enumerate(arrays[0].shape) if dim not in dims)
        start = [lax.broadcast(each, shape) for each in initial]
        if not all(arrays[0].shape[dim] for dim in dims):
            return start
        for dim in dims:
            arrays = _folded(_combiner(closed, len(arrays[0].shape)), arrays, dim)
        return _combiner(closed, len(shape))(start, [lax.squeeze(array, dims) for array in arrays])

    return reduced


def _folded(combine: Combine, arrays: Arrays, dim: int) -> Arrays:
    """Folds a dim to extent 1, by halves. The last of an odd number of elements is combined at the end."""
    extent = arrays[0].shape[dim]
    if extent == 1:
        return arrays
    half = extent // 2
    found = _folded(combine, combine(_each(arrays, dim, 0, half), _each(arrays, dim, half, half)), dim)
    return combine(found, _each(arrays, dim, extent - 1, 1)) if extent % 2 else found


def _each(arrays: Arrays, dim: int, start: int, length: int, stride: int = 1) -> Arrays:
    """Slices `length` elements along a dim of each array."""
    return [lax.slice_in_dim(array, start, start + (length - 1) * stride + 1, stride, dim) for array in arrays]


def _combiner(closed: ClosedJaxpr, rank: int) -> Combine:
    """The combiner of scalars, mapped over arrays of this rank."""
    function = cast("Callable[..., Arrays]", jaxpr_as_fun(closed))
    for _ in range(rank):
        function = cast("Callable[..., Arrays]", jax.vmap(function))
    return lambda left, right: function(*left, *right)


def reduce_window(eqn: JaxprEqn) -> Callable[..., Arrays]:
    """A function that does the windowed fold. It pads the operands, then folds one dim after another.

    The initial values count once in each window, and padding does not count: they need not be the identity of the combiner.
    """
    params = eqn.params
    closed = ClosedJaxpr(params["jaxpr"], params["consts"])
    dims = [*zip(*(params[name] for name in ("window_dimensions", "window_dilation", "window_strides")), strict=True)]
    edges = [(lo, hi, base - 1) for (lo, hi), base in zip(params["padding"], params["base_dilation"], strict=True)]

    def reduced(*values: Array) -> Arrays:
        arrays, initial = values[: len(values) // 2], values[len(values) // 2 :]
        combine = _combiner(closed, len(dims))
        if padded := any(edge != (0, 0, 0) for edge in edges):
            there = lax.pad(lax.full(arrays[0].shape, True), False, edges)
            arrays = [there, *(lax.pad(array, each, edges) for array, each in zip(arrays, initial, strict=True))]
        fold = where_there(combine) if padded else combine
        for dim, (width, dilation, stride) in enumerate(dims):
            count = max(0, (arrays[0].shape[dim] - (width - 1) * dilation - 1) // stride + 1)
            if not count:
                arrays = [lax.slice_in_dim(array, 0, 0, axis=dim) for array in arrays]
            elif width > 1 or stride > 1:
                arrays = _fold_windows(fold, arrays, dim, width, dilation, stride, count)
        start = [lax.broadcast(each, arrays[0].shape) for each in initial]
        return fold([lax.full(arrays[0].shape, True), *start], arrays)[1:] if padded else fold(start, arrays)

    return reduced


def where_there(combine: Combine) -> Combine:
    """Makes a combiner whose first arrays are masks. It combines only elements that exist."""

    def combined(left: Arrays, right: Arrays) -> Arrays:
        (here, *left), (there, *right) = left, right
        either = combine(left, right)
        found = [lax.select(there, lax.select(here, b, r), e) for b, r, e in zip(either, right, left, strict=True)]
        return [here | there, *found]

    return combined


def _fold_windows(combine: Combine, arrays: Arrays, dim: int, width: int, dilation: int, stride: int, count: int) -> Arrays:
    """Folds `count` windows along one dim, each of `width` elements that lie `dilation` apart."""
    if width <= SMALL_WINDOW:
        found = _each(arrays, dim, 0, count, stride)
        for place in range(1, width):
            found = combine(found, _each(arrays, dim, place * dilation, count, stride))
        return found
    half = width // 2
    # The left half's window ends where the right half's begins; an odd width leaves one more element on the right.
    span = (count - 1) * stride + 1
    both = _fold_windows(combine, arrays, dim, half, dilation, 1, span + half * dilation)
    found = combine(_each(both, dim, 0, count, stride), _each(both, dim, half * dilation, count, stride))
    return combine(found, _each(arrays, dim, 2 * half * dilation, count, stride)) if width % 2 else found
