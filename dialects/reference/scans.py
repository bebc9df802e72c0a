"""Prefix folds in NumPy: each element along a dim is the fold of all elements up to it.

scan(MONOIDS["sum"], [1, 2, 3, 4], 0)   -->   [1, 3, 6, 10]          reversed: [10, 9, 7, 4]
"""

from collections.abc import Sequence

import numpy as np

from ..ground.dtypes import Array
from ..ground.monoids import Monoid


def scan(monoid: Monoid, x: Array, axis: int, reverse: bool = False) -> Array:
    """The folds of all prefixes along an axis, or of all suffixes, in the dtype of the array."""
    x = np.flip(x, axis) if reverse else x
    with np.errstate(all="ignore"):
        if monoid.fold == "logsumexp" and x.dtype.kind == "c":
            result = np.log(np.add.accumulate(np.exp(x), axis=axis))
        else:
            result = monoid.accumulate(x, axis)
    return np.flip(result, axis) if reverse else result


def across(monoid: Monoid, blocks: Sequence[Array], axis: int, reverse: bool = False) -> list[Array]:
    """The scan of a whole array from the scans of its blocks, in order: a block's last element is carried into the next."""
    order = range(len(blocks) - 1, -1, -1) if reverse else range(len(blocks))
    found = list(blocks)
    carried: Array | None = None
    for number in order:
        block = blocks[number]
        if carried is not None:
            with np.errstate(all="ignore"):
                found[number] = monoid.function(carried, block).astype(block.dtype)
        carried = np.take(found[number], [0 if reverse else -1], axis=axis)
    return found
