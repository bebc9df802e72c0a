"""When the results of two runs of one program are the same: another order of additions may show, nothing else."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Of the largest element of a result, or of what the tests compute with: what cancels leaves errors of that size.
BOUND = 1e-4
SMALL = 0.05


def disagreement(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """What differs, or nothing: dtypes, shapes, or an element by more than rounding."""
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    for number, (a, b) in enumerate(zip(map(np.asarray, found), map(np.asarray, expected), strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"result {number} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        gap = distance(a, b)
        if not gap <= BOUND:
            return f"result {number} differs by {gap:.2e} of its largest element:\n{a}\nnot\n{b}"
    return ""


def distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """|a-b| at its largest, by the largest finite |b|; equal infinities and NaNs differ by nothing."""
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    left, right = a.astype(wide), b.astype(wide)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    finite = np.isfinite(right)
    scale = float(np.abs(right[finite]).max(initial=SMALL))
    gap = np.abs(np.where(same, 0, left) - np.where(same, 0, right))
    return float(gap.max(initial=0.0)) / scale
