"""Element types by name: how large they are, and which casts between them keep every value.

A pending sum may cross a widening cast, never a narrowing one.
"""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np


@cache
def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return np.dtype(dtype).itemsize


@cache
def widens(source: str, target: str) -> bool:
    """Whether every value of `source` is one of `target`, in the same kind of number: float32 -> float64, not -> bfloat16.

    A complex number is as wide as its parts, so that taking one apart, or putting it together, narrows nothing.
    """
    if source == target:
        return True
    before, after = _part(source), _part(target)
    if _kind(before) != _kind(after):
        return False
    if _kind(before) == "f":
        a, b = ml_dtypes.finfo(before), ml_dtypes.finfo(after)
        return b.nmant >= a.nmant and b.maxexp >= a.maxexp
    return after.itemsize >= before.itemsize


def _part(dtype: str) -> np.dtype:
    """The element type, or that of the parts of a complex number."""
    found = np.dtype(dtype)
    return np.empty((), found).real.dtype if found.kind == "c" else found


def _kind(dtype: np.dtype) -> str:
    """numpy's kind, with the narrow floats of ml_dtypes (kind `V`) among the floats."""
    return "f" if dtype.kind in "fV" else dtype.kind
