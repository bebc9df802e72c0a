"""The states on the way from one layout to another, and the steps that lead from each state to the next.

A state says where each axis is: on a dim at a stride, pending, or nowhere. Only axes that either end names take part. If a
layout is padded and there are few states, all axes do: devices that hold only padding can help. A step is a slice, a gather
or a fold, or what the collective laws make of a gather or fold with a slice of its result. In a state, a dim is padded as far
as its own axes need it; during a step, as far as those before and after it need it.

    [a*128, 512]   is   ((0, 128), None), of the axes a and b
        -- slice b -->               ((0, 128), (1, 256))
        -- all_to_all a, a law -->   ((1, 128), None)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, permutations
from math import lcm, prod
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place, all_axes, major_to_minor
from ...dialects.ranges.factor import Factor
from .collective_terms import Axes, Op, turn
from .steps import devices

Spot: TypeAlias = tuple[int, int] | str | None
"""A dim and a stride; the monoid of a pending reduction; or None, if the axis is nowhere."""
State: TypeAlias = tuple[Spot, ...]
"""The spot of each axis of the space."""

# Up to this many axes are permuted, or folded together, in every combination. With more, two axes change places, or all move to
# where they end; and one axis is folded, or all axes are, or those that end side by side.
FEW_AXES = 4
# Up to this many states, axes may lie as far from a factor as all of them reach; beyond that, only one axis away. With padding
# an end of a dim is like a factor. Once a way is known, a search gives up after `PATIENCE` steps: more in a small space over
# few axes.
SMALL = 8000
PATIENCE = {True: 5000, False: 3000}
PADDED = 4
"""How many times as many steps a search takes if a layout is padded."""


class Run(NamedTuple):
    """Neighbouring axes on a dim, major to minor, with the stride of the minor axis and the elements that they span."""

    axes: Axes
    dim: int
    stride: int
    span: int


class Space:
    """The states between two layouts of a value. No state is padded unless one of the layouts is."""

    def __init__(self, source: Layout, target: Layout, itemsize: int) -> None:
        self.itemsize = itemsize
        self.shape = source.global_shape
        ends = [layout.padded_shape for layout in (source, target)]
        self.is_padded = source.is_padded or target.is_padded
        self.dims = range(len(self.shape) - 1, -1, -1)
        named = major_to_minor((*source.named, *target.axes))
        # Devices that hold only padding may take part along axes that neither end names.
        every = tuple(axis for axis in all_axes(named) if axis.size > 1)
        for axes, between in [*([(every, True)] if self.is_padded else []), (named, True), (named, False)]:
            self.axes, self.is_wide = axes, len(axes) > FEW_AXES
            self.patience = PATIENCE[between and not self.is_wide] * (PADDED if self.is_padded else 1)
            on = [(dim, source.at(dim) + target.at(dim)) for dim in self.dims]
            self.places = [(dim, stride) for dim, each in on for stride in self._strides(dim, each, between=between)]
            if len(self.places) ** len(axes) <= SMALL:
                break
        even = [rounded_up(n, devices(self.axes)) if self.is_padded else n for n in self.shape]
        self.longest = tuple(map(max, even, *ends))
        """The greatest length of each dim, with padding."""
        self.number = {axis: at for at, axis in enumerate(self.axes)}
        self.start, self.goal = self.state(source), self.state(target)
        self.on, self.local, self.first = cache(self._on), cache(self._local), cache(self._first)
        self.group, self.filled = cache(devices), cache(self._filled)

    def _strides(self, dim: int, factors: list[Factor], *, between: bool) -> list[int]:
        """The strides that an axis may have on a dim: next to a factor of either layout; `between`, with others in between too.

        With padding also next to an end of the dim; on a dim without factors at its outer end.
        """
        extent, wide = self.shape[dim], {1}
        for axis in self.axes:
            wide |= {axis.size * n for n in wide} if between else {axis.size}
        lengths = {rounded_up(extent, n) for n in wide} if self.is_padded else {extent}
        # If the factors are nested, a gap between two of them is the same all over.
        ends = {*(f.stride for f in factors), *(f.span for f in factors)} or lengths
        ends = (ends | {1, *lengths} if self.is_padded else ends) - {0}
        found = {end * n for end in ends for n in wide} | {end // n for end in ends for n in wide if end % n == 0}
        most = max(extent, *(f.stride for f in factors), 1)
        return sorted((n for n in found if n <= most and (self.is_padded or extent % n == 0)), reverse=True)

    def spots(self, at: State) -> Iterator[tuple[Place, Spot]]:
        """Pairs each axis with its spot."""
        return zip(self.axes, at, strict=True)

    def pending(self, at: State) -> dict[Place, str]:
        """Maps the axes that are pending to their monoids."""
        return {axis: spot for axis, spot in self.spots(at) if isinstance(spot, str)}

    def state(self, layout: Layout) -> State:
        spots: dict[Place, Spot] = {factor.axis: (dim, factor.stride) for dim, factor in layout.factors}
        spots |= {each.axis: each.monoid for each in layout.pending}
        return tuple(map(spots.get, self.axes))

    def layout(self, at: State, shape: tuple[int, ...] = ()) -> Layout:
        """The layout of a state, without pending reductions. With `shape`, that of an array of another shape.

        Only one block of the major axis may be padded. For axes in turn, the array itself is longer.
        """
        factors = [(spot[0], Factor(axis, spot[1])) for axis, spot in self.spots(at) if isinstance(spot, tuple)]
        ends = enumerate(zip(self.shape, self.during(at), strict=True))
        own = (extent if length == self.span(at, dim) else length for dim, (extent, length) in ends)
        return Layout.of(shape or tuple(own), factors)

    def span(self, at: State, dim: int) -> int:
        """The number of elements that the axes of a dim span."""
        return on[0].span if (on := self.on(at, dim)) else 1

    def count(self, at: State, dim: int) -> int:
        """The number of devices along the axes of a dim."""
        return prod(run.span // run.stride for run in self.on(at, dim))

    def during(self, *states: State) -> tuple[int, ...]:
        """The global shape, padded so that all of these states divide it."""
        if not self.is_padded:
            return self.shape
        spans = [lcm(*(self.span(at, dim) for at in states)) for dim in range(len(self.shape))]
        return tuple(map(rounded_up, self.shape, spans))

    def larger(self, before: State, after: State) -> int:
        """The local bytes before a step or after it, whichever is larger."""
        if not self.is_padded:
            return max(self.local(before), self.local(after))
        shape = self.during(before, after)
        return max(self._part(before, shape), self._part(after, shape))

    def _local(self, at: State) -> int:
        """The local bytes in a state."""
        return self._part(at, self.during(at))

    def _part(self, at: State, shape: tuple[int, ...]) -> int:
        """The bytes of a device's part of an array of this shape."""
        return prod(shape) // devices(axis for axis, spot in self.spots(at) if isinstance(spot, tuple)) * self.itemsize

    def first_lacks(self, at: State) -> int:
        """The bytes of its part in the end that the first device at least has not."""
        wanted, have = ([self.first(state, dim) for dim in self.dims] for state in (self.goal, at))
        return (prod(wanted) - prod(map(min, wanted, have))) * self.itemsize

    def _first(self, at: State, dim: int) -> int:
        """How many elements of a dim, without padding, the first device has: those at the start of each span."""
        return _at_start(self.shape[dim], self.on(at, dim))

    def fits(self, at: State, dim: int) -> bool:
        """Whether the axes of a dim tile it, perhaps padded."""
        outer = rounded_up(self.shape[dim], self.span(at, dim)) if self.is_padded else self.shape[dim]
        if outer > self.longest[dim]:
            return False
        for run in self.on(at, dim):
            if outer % run.span:
                return False
            outer = run.stride
        return True

    def _on(self, at: State, dim: int) -> list[Run]:
        """The axes of a dim, each as a run of its own, major to minor."""
        found = [
            Run((axis,), dim, spot[1], spot[1] * axis.size)
            for axis, spot in self.spots(at)
            if isinstance(spot, tuple) and spot[0] == dim
        ]
        return sorted(found, key=attrgetter("span"), reverse=True)

    def put(self, at: State, *runs: tuple[Axes, int, int], free: Axes = ()) -> State:
        """The state in which first the axes in `free` are removed, and then these runs are placed."""
        spots, number = [*at], self.number
        for axis in free:
            spots[number[axis]] = None
        for axes, dim, stride in runs:
            for axis in reversed(axes):
                spots[number[axis]] = dim, stride
                stride *= axis.size
        return tuple(spots)

    def moves(self, at: State) -> Iterator[tuple[Op, State]]:
        """Yields each step from a state, as a term, with the state after it."""
        yield from self._folded(at)
        for axis, spot in self.spots(at):
            if spot is None:
                yield from ((("slice", *run), after) for run, after in self._placed(at, (axis,)))
        for run in self.runs(at):
            gather = ("all_gather", *run[:3])
            yield gather, self.put(at, free=run.axes)
            yield from self._sliced(at, gather, run.axes)
        yield from self._permuted(at)

    def _placed(self, at: State, axes: Axes) -> Iterator[tuple[tuple[Axes, int, int], State]]:
        """Yields each place that these axes can take beside the others, with the state."""
        span, others = self.group(axes), self.put(at, free=axes)
        for dim, stride in self.places:
            if stride * span <= self.longest[dim] and (self.is_padded or self._has_room(others, dim, stride, stride * span)):
                after = self.put(at, run := (axes, dim, stride))
                if not self.is_padded or self.fits(after, dim):
                    yield run, after

    def _has_room(self, at: State, dim: int, stride: int, span: int) -> bool:
        """Whether axes can lie on a dim without padding: inside one block of those that are there, or around them."""
        for run in self.on(at, dim):
            if run.stride % span and stride % run.span:
                return False
        return self.shape[dim] % span == 0

    def _sliced(self, at: State, inner: Op, axes: Axes) -> Iterator[tuple[Op, State]]:
        """Steps that combine one that removes axes with a slice over the same axes."""
        for run, after in self._placed(at, axes):
            yield from ((op, after) for op in turn(("slice", *run), inner))

    def _folded(self, at: State) -> Iterator[tuple[Op, State]]:
        """Folds over pending axes, alone and combined with a slice over the same axes."""
        pending = self.pending(at)
        for axes in self._together(pending):
            fold = ("all_reduce", pending[axes[0]], axes)
            if axes == major_to_minor(axes):
                yield fold, self.put(at, free=axes)
            yield from self._sliced(at, fold, axes)

    def _together(self, pending: Mapping[Place, str]) -> Iterator[Axes]:
        """The groups of pending axes that are folded together, each with one monoid, in the order that the axes then have."""
        if not self.is_wide:
            every = (axes for count in range(1, len(pending) + 1) for axes in permutations(pending, count))
        else:
            alone = [(axis,) for axis in pending]
            alike = [tuple(axis for axis in pending if pending[axis] == monoid) for monoid in dict.fromkeys(pending.values())]
            beside = [run.axes for run in self.runs(self.goal, longest=True) if set(run.axes) <= {*pending}]
            every = iter(dict.fromkeys([*alone, *alike, *beside]))
        return (axes for axes in every if len({pending[axis] for axis in axes}) == 1)

    def _permuted(self, at: State) -> list[tuple[Op, State]]:
        """Permutes: runs of neighbours get other axes, all in one step. Those that move the fewest axes come first."""
        runs = list(self.runs(at, longest=True))
        found: list[tuple[Axes, State]] = []
        for others in self._others(at, runs):
            pairs = [(run, axes) for run, axes in zip(runs, others, strict=True) if run.axes != axes]
            if pairs and all(self._swaps(run, axes) for run, axes in pairs):
                gone = tuple(axis for run, _ in pairs for axis in run.axes)
                new = self.put(at, *((axes, *run[1:3]) for run, axes in pairs), free=gone)
                changed = (axis for (axis, before), after in zip(self.spots(at), new, strict=True) if before != after)
                found.append((tuple(changed), new))
        return [(("permute", changed, ()), new) for changed, new in sorted(found, key=lambda each: len(each[0]))]

    def _others(self, at: State, runs: Sequence[Run]) -> Iterable[tuple[Axes, ...]]:
        """The axes that each run may get instead of its own: one tuple of choices for each permute to try."""
        here, there = dict(self.spots(at)), dict(self.spots(self.goal))
        free = [axis for axis, spot in here.items() if not isinstance(spot, str)]
        if not self.is_wide:
            return self.filled(tuple(self.group(run.axes) for run in runs), frozenset(free))
        placed = [axis for run in runs for axis in run.axes]
        alike = [(one, other) for one, other in combinations(free, 2) if one.size == other.size]
        swaps = [{one: other, other: one} for one, other in alike if here[one] != here[other]]
        ends = {(axis.size, there[axis]): axis for axis in free}
        changes = [*swaps, homeward({axis: ends.get((axis.size, here[axis])) for axis in placed}, free)]
        return [tuple(tuple(each.get(axis, axis) for axis in run.axes) for run in runs) for each in changes]

    def _swaps(self, run: Run, axes: Axes) -> bool:
        """Whether a gather of a run, followed by a slice over these other axes, equals a permute."""
        return any(op[0] == "permute" for op in turn(("slice", axes, *run[1:3]), ("all_gather", *run[:3])))

    def _filled(self, sizes: tuple[int, ...], free: frozenset[Place]) -> list[tuple[Axes, ...]]:
        """All choices of axes for runs with these numbers of devices."""
        if not sizes:
            return [()]
        found = (axes for n in range(1, len(free) + 1) for axes in permutations(sorted(free), n))
        fitting = [axes for axes in found if self.group(axes) == sizes[0]]
        return [(axes, *rest) for axes in fitting for rest in self.filled(sizes[1:], free - {*axes})]

    def runs(self, at: State, *, longest: bool = False) -> Iterator[Run]:
        """All runs of neighbouring axes in a state; only the longest if `longest`."""
        for dim in self.dims:
            yield from neighbours(self.on(at, dim), longest=longest)


def are_many(source: Layout, target: Layout) -> bool:
    """Whether too many axes or dims take part between two layouts for a search to try every combination."""
    count = len({*source.named, *target.axes})
    return count > FEW_AXES or count * source.rank > FEW_AXES**2


def rounded_up(extent: int, span: int) -> int:
    """The smallest multiple of `span` that is not less than `extent`."""
    return -(-extent // span) * span


def homeward(homes: Mapping[Place, Place | None], free: Iterable[Place]) -> dict[Place, Place]:
    """Maps each axis to the axis that takes its place: its home, if it has one, or else one that is left over.

    Those that can stay do so.
    """
    found = {axis: home for axis, home in homes.items() if home is not None}
    left = dict.fromkeys(axis for axis in (*homes, *free) if axis not in found.values())
    for axis in sorted((axis for axis in homes if axis not in found), key=lambda axis: axis not in left):
        other = axis if axis in left else next((each for each in left if each.size == axis.size), None)
        assert other is not None, "of each size as many axes are left as there are places"
        found[axis] = other
        del left[other]
    return found


def neighbours(singles: Iterable[Run], *, longest: bool = False) -> Iterator[Run]:
    """The runs of neighbouring axes among the axes of a dim, which are given major to minor."""
    ending: list[Run] = []
    for single in singles:
        if ending and ending[0].stride != single.span:
            yield from ending if longest else ()
            ending = []
        ending = [*(Run(run.axes + single.axes, run.dim, single.stride, run.span) for run in ending), single]
        if longest:
            ending = ending[:1]
        else:
            yield from ending
    yield from ending if longest else ()


def _at_start(extent: int, runs: Sequence[Run]) -> int:
    """How many of so many elements the first device has of these runs, major to minor."""
    if not runs:
        return extent
    (_, _, stride, span), *rest = runs
    return extent // span * _at_start(stride, rest) + _at_start(min(extent % span, stride), rest)
