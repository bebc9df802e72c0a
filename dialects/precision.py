"""Element types by name: how large they are, and which casts between them keep every value.

A pending sum may cross a widening cast, never a narrowing one.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import ml_dtypes
import numpy as np


@cache
def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return np.dtype(dtype).itemsize


@cache
def divides(dtype: str) -> bool:
    """Whether every number but zero has an inverse, up to rounding: not among integers."""
    return _kind(_part(dtype)) == "f"


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
        (digits, range_), (more, wider) = _float(before), _float(after)
        return more >= digits and wider >= range_
    # Integers wrap around, each width at its own place.
    return False


def _float(dtype: np.dtype) -> tuple[int, int]:
    """The bits of a float's mantissa and its largest exponent."""
    info: Any = cast(Any, ml_dtypes).finfo(dtype)
    return int(info.nmant), int(info.maxexp)


def _part(dtype: str) -> np.dtype:
    """The element type, or that of the parts of a complex number."""
    return np.dtype({"complex64": "float32", "complex128": "float64"}.get(dtype, dtype))


def _kind(dtype: np.dtype) -> str:
    """numpy's kind, with the narrow floats of ml_dtypes (kind `V`) among the floats."""
    return "f" if dtype.kind in "fV" else dtype.kind
