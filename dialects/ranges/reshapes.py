"""Reshapes: which factors the dims of two shapes have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from .common_refinement import refine

Part: TypeAlias = tuple[int, int]
"""The number of a factor, and its extent."""


def refine_dims(left: Sequence[int], right: Sequence[int]) -> list[tuple[Part, ...] | None]:
    """The factors of each dim of `left`, then of `right`, in the common refinement of both shapes; None for a dim without one.

    Dims are taken in the smallest runs with equal products, so that a part which does not refine leaves the others alone.

    ```
    [6, 4, 5], [2, 12, 5]  -->  6 = 2 * 3, 4, 5;  2, 12 = 3 * 4, 5
    ```
    """
    found: list[tuple[Part, ...] | None] = [None] * (len(left) + len(right))
    number = 0
    for lefts, rights in _runs(left, right):
        a, b = [left[dim] for dim in lefts], [right[dim] for dim in rights]
        factors = refine(a, b)
        if factors is None:
            continue
        numbered = [(number + at, factor) for at, factor in enumerate(factors)]
        number += len(factors)
        for dims, extents, offset in ((lefts, a, 0), (rights, b, len(left))):
            rest = iter(numbered)
            for dim, extent in zip(dims, extents, strict=True):
                found[offset + dim] = _take(rest, extent)
    return found


def _take(rest: Iterator[Part], extent: int) -> tuple[Part, ...]:
    taken: list[Part] = []
    while math.prod(factor for _, factor in taken) < extent:
        taken.append(next(rest))
    return tuple(taken)


def _runs(left: Sequence[int], right: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yields the smallest runs of dims with equal products, from the major end."""
    lefts: list[int] = []
    rights: list[int] = []
    a = b = 1
    i = j = 0
    if 0 in left or 0 in right:
        return
    while i < len(left) or j < len(right):
        if i < len(left) and (a <= b or j == len(right)):
            lefts, a, i = [*lefts, i], a * left[i], i + 1
        else:
            rights, b, j = [*rights, j], b * right[j], j + 1
        if a == b:
            yield lefts, rights
            lefts, rights, a, b = [], [], 1, 1
