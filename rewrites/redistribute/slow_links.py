"""Folds over slow links and others: the devices that are close fold first, and each sends only its part over slow links.

f32[64, 8]{+pod, +data}   -->   reduce_scatter over (data); all_reduce over (pod); all_gather over (data)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

from ...dialects.layouts import Layout, Pending
from ...dialects.ranges.algebra import Loop, Place, major_to_minor
from ...dialects.ranges.factor import Factor
from .around_loops import has_loops
from .search import path
from .steps import Path


@lru_cache(maxsize=1 << 14)
def folded_apart(source: Layout, target: Layout, itemsize: int, is_slow: Callable[[Place], bool]) -> Path | None:
    """The path that folds over slow links only what a device keeps of the fold over the others.

    None if nothing is folded over both, or if the other axes divide no dim.
    """
    resolved = [each for each in source.pending if each not in target.pending and each.axis.size > 1]
    rest = tuple(each for each in source.pending if not isinstance(each.axis, Loop) or each in target.pending)
    if len(rest) < len(source.pending):
        # First over loops, on each device.
        folded = source.with_pending(rest)
        apart = folded_apart(folded, target, itemsize, is_slow)
        return None if apart is None else path(source, folded, itemsize) + apart
    whole = [each for each in resolved if each.axis not in target.axes]
    far = tuple(each for each in whole if is_slow(each.axis))
    near = major_to_minor(each.axis for each in whole if each not in far)
    if not far or not near or has_loops(source, target) or not _is_one_fold(resolved) or target.natural is not target:
        return None
    size, local = prod(axis.size for axis in near), target.local_shape
    dim = next((dim for dim, extent in enumerate(local) if extent and extent % size == 0), None)
    if dim is None:
        return None
    factors, block = list[tuple[int, Factor]](), local[dim]
    for axis in near:
        block //= axis.size
        factors.append((dim, Factor(axis, block)))
    after = Layout.of(target.global_shape, (*target.factors, *factors), target.pending)
    before = after.with_pending((*far, *target.pending))
    return path(source, before, itemsize) + path(before, after, itemsize) + path(after, target, itemsize)


def _is_one_fold(resolved: list[Pending]) -> bool:
    """Whether all of these are one fold over devices that collectives compute."""
    plain = not any(each.scans or each.is_gathered or isinstance(each.axis, Loop) for each in resolved)
    return plain and len({each.monoid for each in resolved}) == 1
