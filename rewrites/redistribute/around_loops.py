"""Redistributions of values that lie on loops: what happens over loops stays apart from what is sent over axes.

A fold over a loop is a carry, a gather a stack, and a slice a row: none of them sends anything. So a redistribution has three
parts. First it leaves the loops that the target has not, or has elsewhere. Then it moves over axes; a loop on which the value
stays repeats that in each trip. At last it enters the loops that are new.

    [data*t:8*4, 8]{+t, +data} ...           -->   all_reduce over (t), ...
    [t:8*4, data*2] to [data*8, 8], data=4   -->   all_gather over (t); all_to_all over (data)
    [t:8*4, data*2] to [t:8*4, 8]            -->   all_gather over (data) in each of 8 trips
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from ...dialects.layouts import Layout, Pending
from ...dialects.ranges.algebra import Extent, Loop, local, placed
from ...dialects.ranges.factor import Factor
from .kinds.all_gather import AllGather
from .kinds.folds import AllReduce
from .kinds.halo import Halo
from .kinds.local import Cut, Pad, Slice
from .path_ends import changed
from .steps import Path, Step


def has_loops(*layouts: Layout) -> bool:
    """Whether any of the layouts has a place in time."""
    return any(isinstance(place, Loop) for layout in layouts for place in layout.named)


@dataclass(frozen=True)
class AroundLoops:
    """A redistribution, of which all pending sums are folded, as steps over loops around one over axes, without loops."""

    start: Layout
    end: Layout
    pending: tuple[Pending, ...]
    """What is pending, with one monoid, and is folded."""
    carried: tuple[Pending, ...] = ()
    """What is pending at both ends."""

    @cached_property
    def staying(self) -> frozenset[int]:
        """The dims on loops that are the same at both ends."""
        ends = enumerate(zip(self.start.dims, self.end.dims, strict=True))
        return frozenset(dim for dim, (here, there) in ends if here is there and has_loops(Layout((here,))))

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops in whose trips the redistribution over axes runs."""
        inside = chain(*(placed(self.start.dims[dim]) for dim in self.staying), (each.axis for each in self.carried))
        return tuple(place for place in inside if isinstance(place, Loop))

    @cached_property
    def first(self) -> tuple[Step, ...]:
        """The folds and gathers over loops."""
        loops = (each for each in reversed(self.pending) if isinstance(each.axis, Loop))
        folds = (AllReduce.of(each.monoid, (each.axis,)).placed(self.start, self.start, 0) for each in loops)
        blocks = list(self._blocks(self.start))
        now = blocks[-1].after if blocks else self.start
        return *folds, *blocks, *(_turned(step) for step in reversed(list(self._entering(now))))

    @cached_property
    def last(self) -> tuple[Step, ...]:
        """The slices over loops."""
        return tuple(self._entering(self.end))

    def _windows(self, layout: Layout) -> Iterator[tuple[int, Factor]]:
        """The dims of a layout that a loop reads in windows, except those that stay."""
        for dim in range(layout.rank):
            one = layout.windows(dim)
            if one is not None and dim not in self.staying and isinstance(one.place, Loop):
                yield dim, one

    def _blocks(self, layout: Layout) -> Iterator[Step]:
        """The steps from windows to equal blocks: each trip keeps those of its rows that no other one has."""
        for dim, one in self._windows(layout):
            blocks = one.even(layout.global_shape[dim], padded=True)
            assert blocks is not None, "a padded dim has equal blocks"
            then = changed(layout, dim, blocks.parts)
            yield Halo.between(layout, then, dim, 0)
            layout = then

    def _entering(self, layout: Layout) -> Iterator[Step]:
        """The steps from the layout without its loops, except on dims that stay, to the layout itself."""
        now, windows = self._without(layout), dict(self._windows(layout))
        for dim, one in windows.items():
            then = changed(now, dim, one.parts)
            yield Halo.between(now, then, dim, 0)
            now = then
        for dim, factor in layout.factors:
            if dim in windows or dim in self.staying or not isinstance(factor.place, Loop):
                continue
            then = changed(now, dim, [*now.at(dim), factor])
            if then.padded_shape[dim] != now.padded_shape[dim]:
                shape = tuple(then.padded_shape[at] if at == dim else extent for at, extent in enumerate(now.global_shape))
                grown = Layout.of(shape, now.factors)
                yield Pad(before=now, after=grown)
                now = grown
            yield Slice.of((factor.place,), dim, factor.stride).placed(now, then, 0)
            now = then

    def _without(self, layout: Layout) -> Layout:
        """The layout without its loops, except on dims that stay."""
        kept = ((dim, each) for dim, each in layout.factors if dim in self.staying or not isinstance(each.place, Loop))
        return Layout.of(layout.global_shape, kept)

    @property
    def over_axes(self) -> tuple[Layout, Layout]:
        """The ends of the redistribution over axes. Of a dim that stays they have what one iteration holds."""
        sums = tuple(each for each in self.pending if not isinstance(each.axis, Loop))
        return self._inside(self._without(self.start)).with_pending(sums), self._inside(self._without(self.end))

    def _inside(self, layout: Layout) -> Layout:
        dims = enumerate(layout.dims)
        return Layout(tuple(Extent(local(each)) if dim in self.staying else each for dim, each in dims))

    def around(self, way: Path) -> Path:
        """The whole redistribution, given the path between the two ends of `over_axes`."""
        return Path.of(*self.first, *map(self._whole, way.steps), *self.last)

    def _whole(self, step: Step) -> Step:
        before, after = (
            Layout(tuple(self.start.dims[dim] if dim in self.staying else each for dim, each in enumerate(layout.dims)))
            for layout in (step.before, step.after)
        )
        return replace(step, before=before, after=after, loops=self.loops)


def _turned(step: Step) -> Step:
    """The step that leads back."""
    if isinstance(step, Slice):
        return AllGather.of(step.axes, step.dim, step.stride).placed(step.after, step.before, 0)
    return Cut(before=step.after, after=step.before)


def innermost(pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """The last reductions with one monoid: they are folded before those that stand before them."""
    return tuple(each for at, each in enumerate(pending) if all(one.monoid == each.monoid for one in pending[at:]))
