"""Compares the results of two runs of one program, which may differ only by the order of additions.

Integers and booleans must be equal. Floats are compared relative to the largest element of their result, or to the size of the
numbers in the tests, because cancellation leaves errors of that size. Narrower types have larger tolerances.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BOUND = 1e-4
SMALL = 0.05
# (bound, smallest size that errors are relative to) of narrow floats
NARROW = {"bfloat16": (4e-2, 1.0), "float16": (4e-3, 1.0)}


def disagreement(found: Sequence[Any], expected: Sequence[Any], bound: float = BOUND, small: float = SMALL) -> str:
    """The difference in dtypes, shapes, or in an element by more than rounding; empty if there is none."""
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    for number, (a, b) in enumerate(zip(map(np.asarray, found), map(np.asarray, expected), strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"result {number} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        own, least = NARROW.get(b.dtype.name, (BOUND, SMALL))
        gap = distance(a, b, max(small, least))
        if not gap <= (0 if b.dtype.kind in "biu" else max(bound, own)):
            return f"result {number} differs by {gap:.2e} of its largest element:\n{a}\nnot\n{b}"
    return ""


def distance(a: NDArray[Any], b: NDArray[Any], small: float = SMALL) -> float:
    """|a-b| at its largest, by the largest finite |b|; equal infinities and NaNs differ by nothing."""
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    left, right = a.astype(wide), b.astype(wide)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    finite = np.isfinite(right)
    scale = float(np.abs(right[finite]).max(initial=small))
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.where(same, 0, left) - np.where(same, 0, right))
    return float(gap.max(initial=0.0)) / scale
