"""Redistribution: the path from one layout to another with the fewest bytes.

The naive way is to replicate the value and slice it again: resolve pending sums, gather every tile to remove, slice every tile
to add. The collective laws (`collectives.rules`) say which single steps do the same as two of these:

    slice(x, 1, 64, all_gather(x, 0, 128, v))     --exchange-->      all_to_all(x, 0, 128, 1, 64, v)

Layouts are the nodes of a graph, and steps its edges; the search is A*. Its local size is never above the larger of source and
destination where the search finds such a path. After many steps, as between large arrays on four axes, it ends with the best
path so far. Over many axes it searches only what changes, and does not try every step.

Then `shortcuts` replaces steps by one exchange of pieces where that receives fewer bytes. A device has to receive what it lacks
in any case. If all blocks hold elements, an exchange of pieces receives no more than that, so it is the best path without a
fold. With padding it may receive more, where a device that has much sends it to others that have none. Then whole steps, cut to
what they need, may be better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import groupby
from math import prod
from operator import ne
from typing import TypeAlias

from ...dialects.ground.monoids import MONOIDS
from ...dialects.layouts import Layout, Pending
from ...dialects.ranges.algebra import Loop, major_to_minor
from ...dialects.ranges.factor import Factor, fit, joined
from .around_loops import AroundLoops, has_loops, innermost, windows_that_go_on
from .axis_bundles import Bundles
from .collective_terms import Op, kind_of, step_of
from .kinds.all_gather import AllGather
from .kinds.folds import AllReduce, Exscan, ReduceScatter
from .kinds.halo import Halo
from .kinds.local import Cut, Pad, Slice
from .kinds.permute import Permute
from .kinds.pieces import Pieces
from .path_ends import changed, places, steps_along, with_all, with_rest, with_sums, without_gathers
from .search_space import Space, State, are_many
from .shortcuts import moves, with_shortcuts
from .steps import Bytes, Path, Step, devices, share, side_by_side

__all__ = ["Path", "Step", "path"]


@lru_cache(maxsize=1 << 14)
def path(source: Layout, target: Layout, itemsize: int) -> Path:
    """Finds the cheapest steps from one layout of a value to another, and their bytes. Reductions pending in both layouts stay.

    The cost is the bytes received by a device, then, over few axes, the number of collectives. Pending scans and folds without
    a collective are done first. Memoised for the process.

    ```
    [data*128, 512] to [512, data*128], 4 bytes, Mesh(data=4)
        -->  all_to_all over (data) 0@128 to 1@128: 196608 bytes
    ```
    """
    source, target = source.split(target.axes), target.split(source.axes)
    pending = tuple(each for each in source.pending if each not in target.pending and each.axis.size > 1)
    start, target = source.with_pending(()), target.with_pending(())
    scans, folds = tuple(each for each in pending if each.scans), tuple(each for each in pending if each.is_gathered)
    if early := scans or folds:
        before = totals(start, scans[0], itemsize) if scans else parts(start, folds, itemsize)
        later = start.with_pending(tuple(each for each in pending if each not in early))
        return before + path(later, target, itemsize)
    if has_loops(source, target):
        carried = tuple(each for each in source.pending if each not in pending)
        return _around_loops(start, target, pending, carried, itemsize)
    ends = start.with_pending(pending), target, itemsize
    if way := _through_windows(*ends) or _among_many(*ends):
        return way
    way = with_shortcuts(_through_runs(*ends) or _Search(*ends).path(), itemsize)
    apart = _apart(*ends) if any(map(moves, way.steps)) else ()
    return min((way, *apart), key=lambda way: way.bytes)


def _around_loops(
    start: Layout, target: Layout, pending: tuple[Pending, ...], carried: tuple[Pending, ...], itemsize: int
) -> Path:
    """The path of a value that lies on loops: steps over loops, then over axes, then over loops.

    A window that reaches into the trip before, or into the one behind, goes on from it.
    """
    for dim in range(start.rank) if not pending else ():
        if (step := windows_that_go_on(start, target, dim)) is not None:
            return Path.of(step) + _around_loops(step.after, target, pending, carried, itemsize)
    if rest := tuple(each for each in pending if each not in innermost(pending)):
        folded = AroundLoops(start, start, innermost(pending), itemsize, (*carried, *rest))
        return _in_trips(folded) + _around_loops(start, target, rest, carried, itemsize)
    return _in_trips(AroundLoops(start, target, pending, itemsize, carried))


def _in_trips(split: AroundLoops) -> Path:
    """The path that moves within trips where it can."""
    way = split.around(path(*split.over_axes, split.itemsize))
    return way if way is not None else _in_trips(replace(split, enters=False))


def _among_many(source: Layout, target: Layout, itemsize: int) -> Path | None:
    """The path over few bundles, for layouts with many axes; None if there are few, or if everything changes."""
    if not are_many(source, target):
        return None
    is_even = not source.is_padded and not target.is_padded
    if is_even:
        first, last = with_all(source, target, apart=True), with_all(target, source, apart=True)
        folded = with_sums(first, target)
        if source.pending and folded is not last:
            # A sum may be folded with less where an axis that only comes or leaves is elsewhere on the way.
            first, last = with_all(source, target, apart=False), with_all(target, source, apart=False)
            folded = first
        if folded is not source or last is not target:
            slices = steps_along(source, first, itemsize, Slice)
            folds = steps_along(first, folded, itemsize, ReduceScatter, *{each.monoid for each in first.pending})
            # Gathers between belong to the end as well, where those of neighbours are one.
            way = without_gathers(path(folded, last, itemsize))
            now = way.steps[-1].after if way.steps else folded
            return slices + folds + way + steps_along(now, target, itemsize, AllGather)
    bundles = Bundles(source, target, itemsize)
    # A bundle takes the place of one of its own size, and its axes the places of any.
    is_whole = is_even and not (bundles.are_fewer and bundles.are_alike)
    if is_whole and (way := _permuted(source, target, itemsize)) is not None:
        return way
    if not bundles.are_fewer:
        return None
    return bundles.apart(path(bundles.source, bundles.target, bundles.itemsize))


def _permuted(source: Layout, target: Layout, itemsize: int) -> Path | None:
    """One permute and gathers, where no path is better, between layouts to which no axis can be added.

    None if they do not lead to the target.

    ```
    [a*b*c*d*e*1] to [c*2*b*d*e*1]   -->   permute to [c*a*b*d*e*1], then a gather of a
    ```
    """
    # Where two axes say which of the same elements a device has, and they differ, it has nothing of its target part.
    here = places(source)
    lacks_all = any(here.get(place, axis) != axis for place, axis in places(target).items())
    if source.pending or not lacks_all or not prod(source.global_shape) or (last := with_rest(target, source)) is None:
        return None
    axes = tuple(each.axis for dim, each in last.factors if (dim, each) not in source.factors)
    permute = Permute.of(major_to_minor(axes), ()).placed(source, last, itemsize)
    return Path.of(permute) + steps_along(last, target, itemsize, AllGather)


def _through_windows(source: Layout, target: Layout, itemsize: int) -> Path | None:
    """The path for a dim that has a halo at either end: to blocks of the dim, on from there, and to a halo at the end."""
    here, there = (
        {dim: one for dim in range(layout.rank) if (one := layout.windows(dim)) is not None} for layout in (source, target)
    )
    if not here and not there:
        return None
    if source is target:
        return Path.of()
    kept = [dim for dim, factor in here.items() if there.get(dim) is factor]
    for dim, factor in here.items():
        if dim not in kept or kept == list(here) == list(there):
            blocks = _alone(target, dim, factor) if dim not in kept else []
            way = _from(source, dim, blocks or _even(source, dim, factor), target, itemsize)
            return min((way, *_gathered(source, target, dim, factor, itemsize)), key=lambda way: way.bytes)
    ways: list[Path] = []
    for dim, factor in (each for each in there.items() if each[0] not in kept):
        for each in (_alone(source, dim, factor, in_turn=True), _even(target, dim, factor), []):
            between = changed(target, dim, each)
            last = Halo.between(between, target, dim, itemsize)
            ways.append(path(source, between, itemsize) + Path.of(last))
    return min(ways, key=lambda way: (way.bytes, way.collectives, len(way.steps)))


def _gathered(source: Layout, target: Layout, dim: int, factor: Factor, itemsize: int) -> Iterator[Path]:
    """The path that gathers windows which tile, and then cuts the range out of the result.

    ```
    511, data*64 halo 1, -1 (8 devices)   -->   512   -->   511, from row 1 on
    ```
    """
    if not factor.is_tiling or factor.stride < 1 or set(factor.axes) & {each.axis for each in target.at(dim)}:
        return
    whole = changed(source.with_pending(()), dim, [])
    shape = tuple(factor.span if at == dim else extent for at, extent in enumerate(whole.global_shape))
    gather = _gather(shape, dim, factor.at(factor.stride).parts, whole.factors, itemsize)
    gone = Layout.of(shape, whole.factors)
    cut = Cut(before=gone, after=whole, first=tuple(factor.before if at == dim else 0 for at in range(whole.rank)))
    yield gather + Path.of(cut) + path(whole.with_pending(source.pending), target, itemsize)


def _alone(layout: Layout, dim: int, factor: Factor, in_turn: bool = False) -> list[Factor]:
    """The factors of a dim, if it is only on the factor's places, in one run of elements a device; otherwise none.

    With `in_turn`, a device may have several blocks, as far apart as the factor's.
    """
    factors, extent = layout.at(dim), layout.global_shape[dim]
    one = joined(extent, factors)
    if one is None or one.place is not factor.place:
        return []
    is_run = not one.is_in_turn(extent) or (in_turn and one.stride == factor.stride)
    return factors if is_run else []


def _even(layout: Layout, dim: int, factor: Factor) -> list[Factor]:
    """Factors for equal blocks of the whole dim on the factor's places; none if the dim has no elements."""
    extent = layout.global_shape[dim]
    blocks = factor.even(extent, padded=True)
    return blocks.parts if extent and blocks is not None else []


def _through_runs(source: Layout, target: Layout, itemsize: int) -> Path | None:
    """The path for a dim with runs of one axis in both layouts, padded to different lengths: it exchanges shared rows."""
    ends = zip(source.padded_shape, target.padded_shape, strict=True)
    for dim in (dim for dim, (before, after) in enumerate(ends) if before != after):
        here, there = source.at(dim), target.at(dim)
        one = joined(source.global_shape[dim], here)
        if one is not None and there and _alone(source, dim, one) and _alone(target, dim, one):
            return _from(source, dim, there, target, itemsize)
    return None


def _from(source: Layout, dim: int, factors: list[Factor], target: Layout, itemsize: int) -> Path:
    """The path that first exchanges the rows of a dim so that it has these factors, then goes on to the target."""
    start = source.with_pending(())
    first = Halo.between(start, changed(start, dim, factors), dim, itemsize)
    return Path.of(first) + path(first.after.with_pending(source.pending), target, itemsize)


def _apart(source: Layout, target: Layout, itemsize: int) -> Iterator[Path]:
    """The paths that fold first or last, and change the dims by the best path there is."""
    if not source.pending:
        return
    start, axes = source.with_pending(()), [each.axis for each in source.pending]
    left = [each for each in target.factors if each[1].axis not in axes]
    shape = target.global_shape
    fits = all(fit(extent, [factor for on, factor in left if on == dim]) for dim, extent in enumerate(shape))
    # What is left of a padded dim may be no layout.
    moved = Layout.of(shape, left) if fits else None
    if start is target or start is moved:
        return
    for folded in (start, *_scattered(source)):
        if folded is not target:
            yield path(source, folded, itemsize) + path(folded, target, itemsize)
    if moved is not None and prod(moved.local_shape) <= max(prod(layout.local_shape) for layout in (source, target)):
        yield path(start, moved, itemsize) + path(moved.with_pending(source.pending), target, itemsize)


def _scattered(source: Layout) -> Iterator[Layout]:
    """The layouts after a reduce_scatter: the fold's axes are outermost or innermost between two factors of a dim."""
    axes, shape = [each.axis for each in source.pending], source.padded_shape
    group = devices(axes)
    if shape != source.global_shape or not all(MONOIDS[each.monoid].linear for each in source.pending):
        return
    for dim, extent in enumerate(shape):
        factors = source.at(dim)
        for high, low in zip([extent, *(f.stride for f in factors)], [*(f.span for f in factors), 1], strict=True):
            for stride in {low, high // group} if (high // low) % group == 0 else ():
                yield Layout.of(shape, [*source.factors, *((dim, factor) for factor in side_by_side(axes, stride))])


def totals(source: Layout, scan: Pending, itemsize: int) -> Path:
    """The step that combines scans of blocks along a dim: each device gathers the totals of all blocks.

    If the blocks lie on a loop alone, the trips run in their order, and each has the fold of the blocks before it.

    ```
    f32[data*64, 8]{+data before 0}   -->   all_gather of f32[data*1, 8]
    f32[t:4*64, 8]{+t before 0}       -->   exscan of f32[t:4*1, 8]
    ```
    """
    dim = scan.dim
    shape, along = source.padded_shape, source.at(dim)
    block = min(factor.stride for factor in along)
    # Blocks that begin elsewhere reach beyond the dim: there is one on each device.
    count = devices(factor.axis for factor in along) if source.windows(dim) is not None else shape[dim] // block
    blocks = (*shape[:dim], count, *shape[dim + 1 :])
    rest = [each for each in source.factors if each[0] != dim]
    if len(along) == 1 and isinstance(scan.axis, Loop) and source.windows(dim) is None:
        held = Layout.of(blocks, [(dim, along[0].at(along[0].stride // block)), *rest])
        step = Exscan(axes=(scan.axis,), monoid=scan.monoid, backwards=scan.backwards)
        return Path.of(step.placed(held, held, itemsize))
    return _gather(blocks, dim, [factor.at(factor.stride // block) for factor in along], rest, itemsize)


def parts(source: Layout, folds: tuple[Pending, ...], itemsize: int) -> Path:
    """The step before a fold without a collective: each device gathers the parts of all devices, stacked on a new first dim.

    ```
    f32[8, 8]{mul data}   -->   all_gather of f32[data*1, 8, 8]
    ```
    """
    axes = [each.axis for each in folds]
    inner = [(dim + 1, factor) for dim, factor in source.factors]
    return _gather((devices(axes), *source.padded_shape), 0, side_by_side(axes, 1), inner, itemsize)


def _gather(shape: Sequence[int], dim: int, own: Iterable[Factor], rest: Sequence[tuple[int, Factor]], itemsize: int) -> Path:
    """The path on which an array of this shape loses the factors of one dim; the rest stays."""
    placed = [(dim, factor) for factor in own]
    return path(Layout.of(shape, [*placed, *rest]), Layout.of(shape, rest), itemsize)


# After this many steps, a search compares its bound with the path that is known without a search.
FEW = 200

_Paid: TypeAlias = tuple[Bytes, int, int]
"""The cost so far: bytes, the number of collectives, and the sum of local sizes in bytes."""
_Ahead: TypeAlias = tuple[Bytes, Bytes, Bytes]
"""What the heap is ordered by: `ahead`."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A state, the step (as a term) that leads to it, and the way to the state before."""

    at: State
    op: Op = ()
    before: _Way | None = None

    def steps(self) -> list[tuple[State, Op, State]]:
        """All steps in order, each between the states around it."""
        return [*self.before.steps(), (self.before.at, self.op, self.at)] if self.before else []


_Entry: TypeAlias = tuple[_Ahead, int, _Paid, _Way]
"""Of the heap: what it is ordered by, how many steps were tried before, what is paid, and the way."""


class _Search:
    """An A* search from one layout to another."""

    def __init__(self, source: Layout, target: Layout, itemsize: int) -> None:
        self.ends = source, target, itemsize
        self.space = space = Space(*self.ends)
        self.limit = max(space.local(space.start), space.local(space.goal))
        self.whole = prod(space.longest) * space.itemsize
        self.wanted = [run for dim in space.dims for run in space.on(space.goal, dim)]

    def path(self) -> Path:
        """The best path found, or the one that is known without a search if that is as good."""
        way = self.way(self.limit)
        if way is None and self.spare is not None:
            return self.spare
        way = way or self.way(self.whole) or self.way(self.whole, homeward=True)
        assert way is not None, "gathering everything leads everywhere"
        return self.made(way)

    def made(self, way: _Way) -> Path:
        return Path.of(*(step for each in self.merged(way.steps()) for step in self.resized(*each)))

    @cached_property
    def spare(self) -> Path | None:
        """A path that is known without a search, or soon found: an exchange of pieces or, with pending folds, one that folds
        first or last."""
        if self.ends[0].pending:
            found = min(_apart(*self.ends), key=lambda way: way.bytes, default=None)
        else:
            step = Pieces.between(*self.ends)
            found = None if step is None else Path.of(step)
        if found is None and self.space.is_wide:
            home = self.way(self.limit, homeward=True)
            found = None if home is None else self.made(home)
        return found

    def way(self, most: int, *, homeward: bool = False) -> _Way | None:
        """The least bytes, then the fewest collectives, then the smallest local sizes; after many steps the best so far.

        Over many axes not every step is tried, and ways of as few bytes are not compared by collectives or local sizes.
        `homeward`, each step brings as many axes as it can to where they end, which soon leads to the target.
        """
        space, tried, done, least = self.space, 0, set[State](), self.missing(self.space.start)
        heap: list[_Entry] = [((0, 0, 0), 0, (0, 0, 0), _Way(space.start))]
        arrived: list[_Entry] = []
        while heap:
            (bytes, *_), _, paid, way = heappop(heap)
            if way.at == space.goal:
                return way
            if not homeward and self.is_dear(bytes, tried):
                return None
            if way.at in done:
                continue
            done.add(way.at)
            for op, after in space.moves(way.at):
                tried += 1
                if after in done or space.local(after) > most or self.comes_before(op, after, way):
                    continue
                larger = space.larger(way.at, after)
                now = paid[0] + self.received(op, larger), paid[1] + (op[0] != "slice"), paid[2] + larger
                if way.before is None and after == space.goal and now[:2] <= (least, 1):
                    return _Way(after, op, way)  # no way is better
                left = self.missing(after)
                if not homeward and self.is_dear(now[0] + left, tried):
                    continue
                entry: _Entry = self.ahead(after, left, now, homeward), tried, now, _Way(after, op, way)
                heappush(heap, entry)
                if after == space.goal:
                    arrived.append(entry)
            if tried > space.patience and arrived:
                return min(arrived)[-1]
            if tried > 4 * space.patience and not (homeward and most == self.whole):
                return None
        return None

    def is_dear(self, bytes: Bytes, tried: int) -> bool:
        """Whether a way of so many bytes is worse than one that is known; asked only of a search that is not short."""
        return tried > FEW and self.spare is not None and bytes > self.spare.bytes

    def ahead(self, at: State, left: Bytes, paid: _Paid, homeward: bool) -> _Ahead:
        """Ranks states: the least bytes of a way through them first, then the fewest collectives and the smallest local sizes.

        On a wide space, of equal bytes the state that is nearest to the target comes first; homeward, of all states.
        """
        every = paid[0] + left
        if self.space.is_wide:
            second, third = left, self.away(at)
        else:
            second = paid[1] + self.collectives_left(at)
            third = paid[2] + (at != self.space.goal and self.space.local(self.space.goal))
        return (self.away(at), every, second) if homeward else (every, second, third)

    def away(self, at: State) -> int:
        """How many axes are elsewhere than where they end."""
        return sum(map(ne, at, self.space.goal))

    def collectives_left(self, at: State) -> int:
        """A lower bound of the collectives on a way to the target.

        A fold ends what one monoid leaves pending. Axes that end elsewhere leave one dim in one collective; or several dims in
        a permute, if no dim has more devices now than in the end.
        """
        space = self.space
        gone = {
            spot if isinstance(spot, str) else spot[0] for spot, end in zip(at, space.goal, strict=True) if spot and spot != end
        }
        dims = [each for each in gone if isinstance(each, int)]
        is_one = len(dims) < 2 or all(space.count(at, dim) <= space.count(space.goal, dim) for dim in dims)
        return len(gone) - len(dims) + (min(len(dims), 1) if is_one else 2)

    def comes_before(self, op: Op, after: State, way: _Way) -> bool:
        """Whether a step and the one before it may change places, and are no worse the other way round.

        Never with padding: in the other order, padding might be sent along.
        """
        if way.before is None or self.space.is_padded or self.space.is_wide:
            return False
        rank, last = kind_of(op).rank, kind_of(way.op).rank
        if rank > last or op[0] == "all_gather":
            return False
        space, before = self.space, way.before.at
        moves = [*zip(before, way.at, after, strict=True)]
        if way.op[0] == "permute":
            changed = {axis.size for axis, (a, b, _) in zip(space.axes, moves, strict=True) if a != b}
            return rank < last and len(changed) == 1
        if any(a != b != c for a, b, c in moves):
            return False
        if rank == last and op[1:] > way.op[1:]:
            return False
        other = tuple(a if b == c else c for a, b, c in moves)
        return all(space.fits(other, dim) for dim in space.dims)

    def missing(self, at: State) -> Bytes:
        """A*'s lower bound: the bytes of its target part that some device does not hold yet, and so receives on any way.

        With padding, those of the first device: parts of others may be padding.
        """
        if self.space.is_padded:
            return 0 if any(self.space.pending(at)) else self.space.first_lacks(at)
        space, wanted = self.space, self.space.local(self.space.goal)
        pending, free = tuple(space.pending(at)), tuple(axis for axis, spot in space.spots(at) if spot is None)
        have = space.local(at)
        if pending and space.put(at, free=pending) == space.goal:
            return AllReduce.received(wanted, space.group(pending))
        if pending:
            # Every element that is wanted is still to be folded, and one device or another receives all parts of each but one.
            return max(wanted, Fraction(share(have, space.group(pending)), space.group(free)))
        for axes, dim, stride, span in self.wanted:
            overlaps = [run for run in space.on(at, dim) if stride % run.span and run.stride % span]
            for run in overlaps:
                inside = (stride % run.stride == 0 and run.span % span == 0) or (
                    run.stride % stride == 0 and span % run.span == 0
                )
                if axes != run.axes and inside:
                    return wanted  # two axes say which of the same elements a device has
            have = have if overlaps else -(-have // (span // stride))
        return max(0, wanted - have)

    def received(self, op: Op, larger: int) -> Bytes:
        """The bytes that a device receives in a step."""
        step = step_of(op)
        return step.received(larger, self.space.group(step.axes))

    def resized(self, before: State, op: Op, after: State) -> Iterator[Step]:
        """The step of a term between arrays with whole tiles: they are padded before it and cut after it, if need be."""
        space, shape = self.space, self.space.during(before, after)

        def sized(at: State) -> tuple[Layout, Layout]:
            own = space.layout(at)
            return own, own if shape == space.during(at) else space.layout(at, shape)

        (given, start), (wanted, end) = sized(before), sized(after)
        if start is not given:
            yield Pad(before=given, after=start)
        yield step_of(op).placed(start, end, space.itemsize)
        if end is not wanted:
            yield Cut(before=end, after=wanted)

    def merged(self, steps: list[tuple[State, Op, State]]) -> Iterator[tuple[State, Op, State]]:
        """Replaces consecutive slices by one slice for each run of neighbours on a dim, major to minor."""
        for is_slice, group in groupby(steps, key=lambda step: step[1][0] == "slice"):
            several = list(group)
            if not is_slice:
                yield from several
                continue
            now, end = several[0][0], several[-1][2]
            new = tuple(None if spot == there else there for spot, there in zip(now, end, strict=True))
            for run in self.space.runs(new, longest=True):
                then = self.space.put(now, run[:3])
                yield now, ("slice", *run[:3]), then
                now = then
