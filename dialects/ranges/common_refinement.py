"""Whether factorisations of one extent fit together: the divisibility chain, which decides reshapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..ground.errors import Error


def refine(p: Sequence[int], q: Sequence[int]) -> list[int] | None:
    """The coarsest factorisation that refines two of the same extent, major to minor, or None if there is none.

    There is one exactly if their partial products, taken together, form a divisibility chain. A reshape whose two sides
    have a refinement only renames indices; one whose sides have none moves data. `Error` if the extents differ.

    ```
    refine([2, 6], [4, 3])  -->  [2, 2, 3]          refine([2, 3], [3, 2])  -->  None
    ```
    """
    extent = math.prod(p)
    if extent != math.prod(q):
        raise Error(f"{list(p)} and {list(q)} do not factor one extent", label=f"{extent} and {math.prod(q)}")
    if extent == 0:
        return list(p) if list(p) == list(q) else None
    strides = sorted({*_strides(p), *_strides(q)}, reverse=True)
    if any(major % minor for major, minor in pairwise(strides)):
        return None
    return [major // minor for major, minor in pairwise(strides)]


def _strides(factors: Sequence[int]) -> list[int]:
    """The products of the last 0, 1, 2, ... factors: their strides, and last the extent."""
    return [math.prod(factors[i:]) for i in range(len(factors) + 1)]
