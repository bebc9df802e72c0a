"""Redistributions of values that lie on loops: what happens over loops stays apart from what is sent over axes.

A fold over a loop is a carry, a gather a stack, and a slice a row: none of them sends anything. So a redistribution has three
parts. First it leaves the loops that the target has not, or has elsewhere. Then it moves over axes; a loop on which the value
stays repeats that in each trip. At last it enters the loops that are new.

    [data*t:8*4, 8]{+t, +data} ...                -->   all_reduce over (t), ...
    [t:8*4, data*2] to [data*8, 8], data=4        -->   all_gather over (t); all_to_all over (data)
    [t:8*4, data*2] to [t:8*4, 8]                 -->   all_gather over (data) in each of 8 trips
    [data*t:8*4, 8] to [4*t:8*4, data*2]          -->   all_to_all over (data) in each of 8 trips, which have the same rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod

from ...dialects.layouts import Layout, Pending
from ...dialects.ranges.algebra import Extent, Loop, Range, in_time, local, placed
from ...dialects.ranges.factor import Factor, fit
from .kinds.all_gather import AllGather
from .kinds.folds import AllReduce
from .kinds.halo import Halo
from .kinds.local import Cut, Pad, Slice
from .path_ends import changed
from .steps import DimPart, Path, Step


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
    itemsize: int
    carried: tuple[Pending, ...] = ()
    """What is pending at both ends."""
    enters: bool = True
    """Whether it may move within the trips of loops that are at both ends."""

    @cached_property
    def inside(self) -> frozenset[int]:
        """The dims of which each trip has the same elements at both ends, maybe on other devices."""
        dims = range(self.start.rank) if self.enters else ()
        return frozenset(
            dim
            for dim in dims
            if _in_time(self.start, dim) == _in_time(self.end, dim) != []
            and not any(factor.has_halo for layout in (self.start, self.end) for factor in layout.at(dim))
            and not any(_is_padded(layout, dim) for layout in (self.start, self.end))
        )

    @cached_property
    def staying(self) -> frozenset[int]:
        """The other dims on loops that are the same at both ends: padded ones, and windows. They do not change on the way."""
        dims = range(self.start.rank) if self.enters else ()
        same = (dim for dim in dims if self.start.dims[dim] is self.end.dims[dim] and dim not in self.inside)
        return frozenset(dim for dim in same if has_loops(Layout((self.start.dims[dim],))))

    @cached_property
    def kept(self) -> frozenset[int]:
        """The dims that stay on their loops."""
        return self.staying | self.inside

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops in whose trips the redistribution over axes runs."""
        inside = chain(*(placed(self.start.dims[dim]) for dim in sorted(self.kept)), (each.axis for each in self.carried))
        return in_time(inside)

    @cached_property
    def first(self) -> tuple[Step, ...]:
        """The folds and gathers over loops."""
        loops = (each for each in reversed(self.pending) if isinstance(each.axis, Loop))
        folds = (AllReduce.of(each.monoid, (each.axis,)).placed(self.start, self.start, 0) for each in loops)
        blocks = list(self._blocks(self.start))
        now = blocks[-1].after if blocks else self.start
        return *folds, *blocks, *(self._turned(step) for step in reversed(list(self._entering(now))))

    def _turned(self, step: Step) -> Step:
        """The step that leads back."""
        if isinstance(step, Slice):
            back = AllGather.of(step.axes, step.dim, step.stride).placed(step.after, step.before, self.itemsize)
            return replace(back, loops=step.loops)
        return Cut(before=step.after, after=step.before)

    @cached_property
    def last(self) -> tuple[Step, ...]:
        """The slices over loops."""
        return tuple(self._entering(self.end))

    def _windows(self, layout: Layout) -> Iterator[tuple[int, Factor]]:
        """The dims of a layout that a loop reads in windows, except those that stay."""
        for dim in range(layout.rank):
            one = layout.windows(dim)
            if one is not None and dim not in self.kept and isinstance(one.place, Loop):
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
        for dim, factor in (each for each in self._entered(layout) if each[0] not in windows):
            if now.padded_shape[dim] != (whole := layout.padded_shape[dim]):
                grown = Layout.of([whole if at == dim else n for at, n in enumerate(now.global_shape)], now.factors)
                yield Pad(before=now, after=grown)
                now = grown
            factors = [*now.at(dim), factor]
            is_last = len(factors) == len(layout.at(dim))
            then = Layout((*now.dims[:dim], layout.dims[dim], *now.dims[dim + 1 :])) if is_last else changed(now, dim, factors)
            step = Slice.of((factor.place,), dim, factor.stride).placed(now, then, self.itemsize)
            yield step if step.is_in_time else replace(step, loops=self.loops)
            now = then

    def _without(self, layout: Layout) -> Layout:
        """The layout without its loops, except on dims that stay."""
        entered = self._entered(layout)
        return Layout.of(layout.global_shape, [each for each in layout.factors if each not in entered])

    def _entered(self, layout: Layout) -> list[tuple[int, Factor]]:
        """The factors that are entered and left, except on dims that stay: those on loops.

        Before them, those on axes that divide only what is padded for a loop.
        """
        loops = [(dim, each) for dim, each in layout.factors if dim not in self.kept and isinstance(each.place, Loop)]
        axes = [(dim, each) for dim, each in layout.factors if not isinstance(each.place, Loop)]
        padded = {dim for dim, _ in loops if _is_padded(layout, dim)}
        extents = layout.global_shape
        across = {dim for dim in padded if not fit(extents[dim], [each for at, each in axes if at == dim])}
        return [*(each for each in axes if each[0] in across), *loops]

    @property
    def over_axes(self) -> tuple[Layout, Layout]:
        """The ends of the redistribution over axes. Of a dim that stays they have what one iteration holds."""
        sums = tuple(each for each in self.pending if not isinstance(each.axis, Loop))
        return self._inside(self._without(self.start)).with_pending(sums), self._inside(self._without(self.end))

    def _inside(self, layout: Layout) -> Layout:
        """The layout of what one trip has."""
        parts = list(layout.dims)
        for dim in self.kept:
            parts[dim] = Extent(local(parts[dim])) if dim in self.staying else self._in_a_trip(layout, dim)
        return Layout(tuple(parts))

    def _in_a_trip(self, layout: Layout, dim: int) -> Range:
        """A dim without the digits of its loops."""
        extent = layout.global_shape[dim]
        factors: list[Factor] = [each for each in layout.at(dim) if not isinstance(each.place, Loop)]
        for loop in _in_time(layout, dim):
            extent //= loop.size
            factors = [each.at(each.stride // loop.size) if each.stride > loop.stride else each for each in factors]
        return Layout.of((extent,), [(0, each) for each in factors]).dims[0]

    def around(self, way: Path) -> Path | None:
        """The whole redistribution, given the path between the two ends of `over_axes`; None if it goes across a loop."""
        hidden = {place for dim in self.staying for place in placed(self.start.dims[dim])}
        for step in way.steps:
            if not hidden.isdisjoint(step.axes) or any(step.before.at(dim) or step.after.at(dim) for dim in self.staying):
                return None
            if any(self._is_across(dim, step) for dim in self.inside):
                return None
        return Path.of(*self.first, *map(self._whole, way.steps), *self.last)

    def _whole(self, step: Step) -> Step:
        """The step in each trip, as a step of the whole value."""
        before, after = (self._with_loops(layout) for layout in (step.before, step.after))
        if self.inside:
            # Of each dim, all strides are on one side of each loop.
            strides = {dim: factor.stride for factors in step.changes() for dim, factor in factors}
            minor = [prod(size for at, size in self._digits(dim) if strides.get(dim, 0) >= at) for dim in range(before.rank)]
            extents = step.before.global_shape
            step = step.renamed(step.axes, [DimPart(dim, extents[dim], each) for dim, each in enumerate(minor)])
        return replace(step, before=before, after=after, loops=self.loops)

    def _digits(self, dim: int) -> list[tuple[int, int]]:
        """The loops of a dim within which axes move: the stride in one trip at which each is left out, and its size."""
        loops = _in_time(self.start, dim) if dim in self.inside else []
        return [(loop.stride // prod(each.size for each in loops[at + 1 :]), loop.size) for at, loop in enumerate(loops)]

    def _is_across(self, dim: int, step: Step) -> bool:
        """Whether a factor of a dim in a trip would lie across a loop, or factors on both sides of one move at once."""
        ends = [layout.at(dim) for layout in (step.before, step.after)]
        moved = [factor for factors in step.changes() for at, factor in factors if at == dim]
        return any(_is_padded(layout, dim) for layout in (step.before, step.after)) or any(
            any(each.stride < at < each.span for each in chain(*ends)) or len({each.stride >= at for each in moved}) > 1
            for at, _ in self._digits(dim)
        )

    def _with_loops(self, layout: Layout) -> Layout:
        """The layout of the whole value, of which one trip has this."""
        parts = list(layout.dims)
        for dim in self.kept:
            parts[dim] = self.start.dims[dim] if dim in self.staying else self._of_all_trips(layout, dim)
        return Layout(tuple(parts))

    def _of_all_trips(self, layout: Layout, dim: int) -> Range:
        factors: list[Factor] = layout.at(dim)
        for loop in reversed(_in_time(self.start, dim)):
            outer = [each.at(each.stride * loop.size) for each in factors if each.stride >= loop.stride]
            factors = [*outer, loop, *(each for each in factors if each.stride < loop.stride)]
        return Layout.of((self.start.global_shape[dim],), [(0, each) for each in factors]).dims[0]


def _in_time(layout: Layout, dim: int) -> list[Factor]:
    """The factors of a dim that are on loops, major to minor."""
    return sorted((each for each in layout.at(dim) if isinstance(each.place, Loop)), key=lambda each: -each.stride)


def _is_padded(layout: Layout, dim: int) -> bool:
    return layout.padded_shape[dim] != layout.global_shape[dim]


def innermost(pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """The last reductions with one monoid: they are folded before those that stand before them."""
    return tuple(each for at, each in enumerate(pending) if all(one.monoid == each.monoid for one in pending[at:]))


def windows_that_go_on(start: Layout, end: Layout, dim: int) -> Halo | None:
    """The step from blocks on a loop to windows, if each trip needs only what the one before it has, or the one behind it."""
    have, want = start.at(dim), end.windows(dim)
    if want is None or not isinstance(want.place, Loop) or [each.place for each in have] != [want.place]:
        return None
    if have[0].has_halo or start.global_shape[dim] != end.global_shape[dim] or _is_padded(start, dim):
        return None
    step = Halo.between(start, changed(start, dim, want.parts), dim, 0)
    return step if step.order else None
