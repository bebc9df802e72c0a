"""Splits, joins and folds the local arrays of one group of devices. Collectives are defined by these functions.

The functions take the arrays of any library that follows the array API standard.

    split of [0 1 2 3 4 5 6 7] in blocks of 2 for 2 devices   -->   [0 1 4 5] and [2 3 6 7]         `join` is the inverse
"""

from collections.abc import Sequence
from typing import Any

from .ground.dtypes import Array, is_float
from .ground.monoids import MONOIDS


def split(array: Array, dim: int, block: int, count: int) -> list[Array]:
    """Deals the blocks of a dim to `count` devices in turn, and returns each device's part."""
    before, length, after = array.shape[:dim], array.shape[dim], array.shape[dim + 1 :]
    dealt = array.reshape(*before, length // (count * block), count, block, *after)
    rows = (slice(None),) * (dim + 1)
    return [dealt[(*rows, number)].reshape(*before, length // count, *after) for number in range(count)]


def join(arrays: Sequence[Array], dim: int, block: int) -> Array:
    """Interleaves the blocks of the devices' arrays along a dim: the inverse of `split`."""
    before, length, after = arrays[0].shape[:dim], arrays[0].shape[dim], arrays[0].shape[dim + 1 :]
    dealt = [array.reshape(*before, length // block, block, *after) for array in arrays]
    return library(arrays[0]).stack(dealt, axis=dim + 1).reshape(*before, len(arrays) * length, *after)


def fold(monoid: str, arrays: Sequence[Array]) -> Array:
    """Folds the arrays in the order of the devices. Narrow floats are added in their own type, as the IR does."""
    combine = getattr(library(arrays[0]), MONOIDS[monoid].function.__name__)
    result = arrays[0]
    for array in arrays[1:]:
        result = combine(result, array)
    return result.astype(arrays[0].dtype) if is_float(result.dtype) else result


def library(array: Array) -> Any:
    """The array namespace of an array: NumPy, or the library that made it."""
    return array.__array_namespace__()
