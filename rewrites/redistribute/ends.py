"""Ends of a way among many axes: what only comes is sliced or scattered first, and what only leaves is gathered last.

    [a*2, b*2, 4] to [4, c*2, b*2]   -->   gather a last: [a*2, b*2, 4] to [a*2, c*2, b*2], then on to [4, c*2, b*2]

So all that lies between moves the smallest parts, and axes that only come or only leave take no part in the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ...dialects.layouts import Layout
from ...dialects.monoids import MONOIDS
from ...dialects.ranges.factor import Factor, fit
from .kinds.all_gather import AllGather
from .kinds.alone import Slice
from .kinds.folds import ReduceScatter
from .moves import Run, neighbours
from .steps import Path, Step, devices


def changed(layout: Layout, dim: int, factors: list[Factor]) -> Layout:
    """The layout with these factors on a dim, and no others."""
    rest = [each for each in layout.factors if each[0] != dim]
    return Layout.of(layout.global_shape, [*rest, *((dim, factor) for factor in factors)])


def with_all(few: Layout, many: Layout, *, apart: bool) -> Layout:
    """The first layout, with the factors of the other one that it has room for, if it has their axes nowhere.

    Unless they are taken `apart`, only of dims on which the other one has all that it has, and only more.
    """
    named = {*few.axes, *(each.axis for each in few.pending)}
    shape, found = few.global_shape, [*few.factors]
    for dim in range(few.rank):
        less, more = few.at(dim), many.at(dim)
        new = [factor for factor in more if factor.axis not in named]
        if apart or (all(factor in more for factor in less) and len(less) + len(new) == len(more)):
            for factor in new:
                beside = [each for on, each in found if on == dim]
                found += [(dim, factor)] if fit(shape[dim], [*beside, factor]) else []
    return few if len(found) == len(few.factors) else Layout.of(shape, found, few.pending)


def with_sums(few: Layout, many: Layout) -> Layout:
    """The first layout, with pending sums along the axes that it has room for where the other one has them."""
    kinds = {each.monoid for each in few.pending}
    if len(kinds) != 1 or not MONOIDS[kinds.pop()].linear:
        return few
    placed = with_all(few.with_pending(()), many, apart=True)
    return placed.with_pending(tuple(each for each in few.pending if each.axis not in placed.axes))


def sliced(before: Layout, after: Layout) -> Path:
    """The slices from a layout to one that has more axes."""
    steps, now = list[Step](), before.with_pending(())
    for run in _runs(after, before):
        then = _with(now, run, after)
        steps.append(replace(Slice.of(run.axes, run.dim, run.stride), before=now, after=then))
        now = then
    return Path(tuple(steps), 0)


def scattered(before: Layout, after: Layout, itemsize: int) -> Path:
    """The reduce_scatters from a layout to one that has axes of pending sums on dims."""
    steps, now = list[Step](), before.with_pending(())
    for run in _runs(after, before):
        then = _with(now, run, after)
        received = ReduceScatter.received(itemsize * prod(now.local_shape), devices(run.axes))
        step = ReduceScatter.of(before.pending[0].monoid, run.axes, run.dim, run.stride)
        steps.append(replace(step, bytes=received, before=now, after=then))
        now = then
    return Path(tuple(steps), sum(step.bytes for step in steps))


def gathered(before: Layout, after: Layout, itemsize: int) -> Path:
    """The gathers from a layout to one that has fewer axes."""
    steps, now = list[Step](), before
    for run in _runs(before, after):
        then = changed(now, run.dim, [each for each in now.at(run.dim) if each.axis not in run.axes])
        received = AllGather.received(itemsize * prod(then.local_shape), devices(run.axes))
        steps.append(replace(AllGather.of(run.axes, run.dim, run.stride), bytes=received, before=now, after=then))
        now = then
    return Path(tuple(steps), sum(step.bytes for step in steps))


def without_gathers(way: Path) -> Path:
    """The way up to the gathers in which it ends."""
    steps = list(way.steps)
    while steps and isinstance(steps[-1], AllGather):
        steps.pop()
    return Path(tuple(steps), sum(step.bytes for step in steps))


def _runs(many: Layout, few: Layout) -> Iterator[Run]:
    """The neighbours that one layout has beyond another."""
    for dim in reversed(range(many.rank)):
        more = [factor for factor in many.at(dim) if factor not in few.at(dim)]
        yield from neighbours([Run((each.axis,), dim, each.stride, each.span) for each in more], longest=True)


def _with(layout: Layout, run: Run, many: Layout) -> Layout:
    """The layout with a run of another one."""
    more = [each for each in many.at(run.dim) if each.axis in run.axes]
    return changed(layout, run.dim, [*layout.at(run.dim), *more])
