"""Ends of a way among many axes: what only comes is sliced first, and what only leaves is gathered last.

    [a*2, b*2, 4] to [4, c*2, b*2]   -->   gather a last: [a*2, b*2, 4] to [a*2, c*2, b*2], then on to [4, c*2, b*2]

So all that lies between moves the smallest parts, and dims that only gain or only lose axes take no part in the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...dialects.ranges.factor import Factor
from .kinds.all_gather import AllGather
from .kinds.alone import Slice
from .moves import Run, neighbours
from .steps import Path, Step, devices


def changed(layout: Layout, dim: int, factors: list[Factor], mesh: Mesh) -> Layout:
    """The layout with these factors on a dim, and no others."""
    rest = [each for each in layout.factors(mesh) if each[0] != dim]
    return Layout.of(layout.global_shape(mesh), [*rest, *((dim, factor) for factor in factors)])


def with_all(few: Layout, many: Layout, mesh: Mesh) -> Layout:
    """The first layout, with the dims of the other one which only have more axes, if the first one has these nowhere."""
    named = {*few.axes(), *(each.axis for each in few.pending)}
    dims = list(few.dims)
    for dim in range(few.rank):
        less, more = few.at(dim, mesh), many.at(dim, mesh)
        if all(factor in more for factor in less) and all(each.name not in named for each in more if each not in less):
            dims[dim] = many.dims[dim]
    return Layout(tuple(dims), few.pending)


def sliced(before: Layout, after: Layout, mesh: Mesh) -> Path:
    """The slices from a layout to one that has more axes."""
    steps, now = list[Step](), before
    for run in _runs(after, before, mesh):
        then = changed(now, run.dim, [*now.at(run.dim, mesh), *_of(run, after, mesh)], mesh)
        steps.append(replace(Slice.of(run.axes, run.dim, run.stride), before=now, after=then))
        now = then
    return Path(tuple(steps), 0)


def gathered(before: Layout, after: Layout, itemsize: int, mesh: Mesh) -> Path:
    """The gathers from a layout to one that has fewer axes."""
    steps, now = list[Step](), before
    for run in _runs(before, after, mesh):
        then = changed(now, run.dim, [each for each in now.at(run.dim, mesh) if each.name not in run.axes], mesh)
        received = AllGather.received(itemsize * prod(then.local_shape(mesh)), devices(run.axes, mesh))
        steps.append(replace(AllGather.of(run.axes, run.dim, run.stride), bytes=received, before=now, after=then))
        now = then
    return Path(tuple(steps), sum(step.bytes for step in steps))


def _runs(many: Layout, few: Layout, mesh: Mesh) -> Iterator[Run]:
    """The neighbours that one layout has beyond another."""
    for dim in reversed(range(many.rank)):
        more = [factor for factor in many.at(dim, mesh) if factor not in few.at(dim, mesh)]
        yield from neighbours([Run((each.name,), dim, each.stride, each.span) for each in more], longest=True)


def _of(run: Run, layout: Layout, mesh: Mesh) -> list[Factor]:
    return [each for each in layout.at(run.dim, mesh) if each.name in run.axes]
