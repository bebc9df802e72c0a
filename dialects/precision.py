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
    """Whether every value of `source` is one of `target`, in the same kind of number: float32 -> float64, not float32 -> bfloat16."""
    if source == target:
        return True
    before, after = np.dtype(source), np.dtype(target)
    if _kind(before) != _kind(after):
        return False
    if _kind(before) == "f":
        a, b = ml_dtypes.finfo(before), ml_dtypes.finfo(after)
        return b.nmant >= a.nmant and b.maxexp >= a.maxexp
    return after.itemsize >= before.itemsize


def _kind(dtype: np.dtype) -> str:
    """numpy's kind, with the narrow floats of ml_dtypes (kind `V`) among the floats."""
    return "f" if dtype.kind in "fV" else dtype.kind
