"""Redistribution: from one layout to another by the fewest bytes.

The naive way is to replicate the value and slice it again: resolve pending sums, gather every tile to remove, slice every tile
to add. That is a term, and the collective laws (`collectives.rules`) rewrite it into better ones. The laws of `order.rules` say
which step runs first. The search is best-first over rule applications:

    slice(x, 1, 64, all_gather(x, 0, 128, v))     --exchange-->      all_to_all(x, 0, 128, 1, 64, v)

The result is `slice*; (reduce_scatter | all_to_all | permute)*; all_reduce; all_gather*` where placements allow, and its
local size is never above the larger of source and destination, unless placements overlap in a way that only sub-axes
could take apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from heapq import heappop, heappush
from itertools import count
from math import prod
from typing import NamedTuple, cast

from ...dialects.layouts import Layout, Pending
from ...dialects.mesh import Mesh
from ...dialects.ranges.factor import Factor, fit, is_padded
from .collective_terms import Laws, Spine, laws_on
from .kinds.alone import Cut, Pad
from .kinds.halo import Halo
from .steps import Bytes, Path, Spots, Step, devices, in_order, merged

__all__ = ["Path", "Step", "path"]

# The most terms that one search visits; ordinary searches end after a handful.
PATIENCE = 400


@cache
def path(source: Layout, target: Layout, itemsize: int, mesh: Mesh) -> Path:
    """The cheapest steps from one layout of a value to another, and their bytes. What stays pending is pending in both.

    The cost is the bytes received by a device, then the number of collectives. Pending scans and folds without
    a collective are done first. Memoised for the process.

    ```
    [data*128, 512] to [512, data*128], 4 bytes, Mesh(data=4)
        -->  all_to_all over (data) 0@128 to 1@128: 196608 bytes
    ```
    """
    pending = tuple(each for each in source.pending if each not in target.pending and mesh[each.axis] > 1)
    start, target = source.with_pending(()), target.with_pending(())
    scans, folds = tuple(each for each in pending if each.scans), tuple(each for each in pending if each.is_gathered)
    if early := scans or folds:
        before = totals(start, scans[0].dim, itemsize, mesh) if scans else parts(start, folds, itemsize, mesh)
        later = start.with_pending(tuple(each for each in pending if each not in early))
        rest = path(later, target, itemsize, mesh)
        return _joined(before, rest)
    if way := _through_windows(start.with_pending(pending), target, itemsize, mesh):
        return way
    if way := _through_whole_dims(start.with_pending(pending), target, itemsize, mesh):
        return way
    # Inside, all dims are as long as their padding: a dim that is padded later is padded first, and cut at the end.
    ends = zip(start.padded_shape(mesh), target.padded_shape(mesh), strict=True)
    room = tuple(before if start.at(dim, mesh) else after for dim, (before, after) in enumerate(ends))
    source, aim = (Layout.of(room, layout.factors(mesh)) for layout in (start, target))
    best = _Problem(source, aim, itemsize, mesh, laws_on(mesh)).search(_naive(source, pending, aim, mesh))
    pads = () if start.local_shape(mesh) == source.local_shape(mesh) else (Pad(before=start, after=source),)
    cuts = () if target.local_shape(mesh) == aim.local_shape(mesh) else (Cut(before=aim, after=target),)
    return Path((*pads, *best.steps, *cuts), best.bytes)


def _through_windows(source: Layout, target: Layout, itemsize: int, mesh: Mesh) -> Path | None:
    """The way if a dim has a halo in a layout: to blocks of the dim, on from there, and to a halo at the end."""
    here, there = ({dim: factor for dim, factor in layout.factors(mesh) if factor.has_halo} for layout in (source, target))
    if not here and not there:
        return None
    if source is target:
        return Path((), 0)
    kept = [dim for dim, factor in here.items() if there.get(dim) is factor]
    ways: list[Path] = []
    for dim, factor in here.items():
        if dim not in kept or kept == list(here) == list(there):
            blocks = _alone(target, dim, factor, mesh) if dim not in kept else []
            between = _changed(source.with_pending(()), dim, blocks or [_even(source, dim, factor, mesh)], mesh)
            first = Halo.between(source.with_pending(()), between, dim, itemsize, mesh)
            return _joined(Path((first,), first.bytes), path(between.with_pending(source.pending), target, itemsize, mesh))
    dim, factor = next(each for each in there.items() if each[0] not in kept)
    for each in (_alone(source, dim, factor, mesh), [_even(target, dim, factor, mesh)], []):
        between = _changed(target, dim, each, mesh)
        last = Halo.between(between, target, dim, itemsize, mesh)
        ways.append(_joined(path(source, between, itemsize, mesh), Path((last,), last.bytes)))
    return min(ways, key=lambda way: (way.bytes, way.collectives, len(way.steps)))


def _joined(first: Path, then: Path) -> Path:
    return Path(first.steps + then.steps, first.bytes + then.bytes)


def _changed(layout: Layout, dim: int, factors: list[Factor], mesh: Mesh) -> Layout:
    """The layout with these factors on a dim, and no others."""
    rest = [each for each in layout.factors(mesh) if each[0] != dim]
    return Layout.of(layout.global_shape(mesh), [*rest, *((dim, factor) for factor in factors)])


def _alone(layout: Layout, dim: int, factor: Factor, mesh: Mesh) -> list[Factor]:
    """The factors of a dim, if it is only on the factor's place, one run of elements a device; otherwise none."""
    factors = layout.at(dim, mesh)
    alone = [
        each
        for each in factors
        if each.place == factor.place and (each.has_halo or each.span >= layout.global_shape(mesh)[dim])
    ]
    return alone if len(factors) == 1 else []


def _even(layout: Layout, dim: int, factor: Factor, mesh: Mesh) -> Factor:
    """The factor's place on the whole dim, in blocks of one size."""
    return factor.at(-(-layout.global_shape(mesh)[dim] // factor.size))


def _through_whole_dims(source: Layout, target: Layout, itemsize: int, mesh: Mesh) -> Path | None:
    """The way if a dim is tiled in both layouts, but padded to different lengths: it is gathered, and cut or padded there."""
    ends = zip(source.padded_shape(mesh), target.padded_shape(mesh), strict=True)
    both = [
        dim for dim, (before, after) in enumerate(ends) if before != after and source.at(dim, mesh) and target.at(dim, mesh)
    ]
    if not both:
        return None
    for dim in both:
        (here, *_), mine, theirs = source.at(dim, mesh), source.with_pending(()), target.at(dim, mesh)
        if _alone(source, dim, here, mesh) and theirs == _alone(target, dim, here, mesh):
            between = _changed(mine, dim, theirs, mesh)
            step = Halo.between(mine, between, dim, itemsize, mesh)
            rest = path(between.with_pending(source.pending), target, itemsize, mesh)
            return _joined(Path((step,), step.bytes), rest)
    whole = source.without([factor.name for dim in both for factor in source.at(dim, mesh)], mesh)
    first, then = path(source, whole.with_pending(()), itemsize, mesh), path(whole.with_pending(()), target, itemsize, mesh)
    return _joined(first, then)


def totals(source: Layout, dim: int, itemsize: int, mesh: Mesh) -> Path:
    """The step that combines scans of blocks along a dim: every device gathers the totals of all blocks.

    ```
    f32[data*64, 8]{+data before 0}   -->   all_gather of f32[data*1, 8]
    ```
    """
    shape, factors = source.padded_shape(mesh), source.factors(mesh)
    block = min(factor.stride for factor in source.at(dim, mesh))
    blocks = (*shape[:dim], shape[dim] // block, *shape[dim + 1 :])
    apart = [(at, factor.at(factor.stride // block) if at == dim else factor) for at, factor in factors]
    gathered = [each for each in apart if each[0] != dim]
    return path(Layout.of(blocks, apart), Layout.of(blocks, gathered), itemsize, mesh)


def parts(source: Layout, folds: tuple[Pending, ...], itemsize: int, mesh: Mesh) -> Path:
    """The step before a fold that has no collective: every device gathers the parts of all devices, on a new first dim.

    ```
    f32[8, 8]{mul data}   -->   all_gather of f32[data*1, 8, 8]
    ```
    """
    stacked = (prod(mesh[each.axis] for each in folds), *source.padded_shape(mesh))
    inner = [(dim + 1, factor) for dim, factor in source.factors(mesh)]
    strides = [prod(mesh[minor.axis] for minor in folds[at + 1 :]) for at in range(len(folds))]
    outer = [(0, Factor.of(each.axis, stride, mesh)) for each, stride in zip(folds, strides, strict=True)]
    return path(Layout.of(stacked, [*outer, *inner]), Layout.of(stacked, inner), itemsize, mesh)


def _naive(source: Layout, pending: Sequence[Pending], target: Layout, mesh: Mesh) -> Spine:
    """Resolve, replicate, slice; outermost step first."""
    here, there = (sorted((f.name, dim, f.stride) for dim, f in layout.factors(mesh)) for layout in (source, target))
    cut = [("slice", *each) for each in there if each not in here]
    whole = [("all_gather", *each) for each in here if each not in there]
    return (*cut, *whole, *(("all_reduce", each.monoid, each.axis) for each in reversed(pending)))


class _Found(NamedTuple):
    """A term's steps with their cost: the best is the least (too large?, bytes, collectives, size while on the way)."""

    too_large: bool
    bytes: Bytes
    collectives: int
    size: int
    steps: tuple[Step, ...]

    @property
    def key(self) -> tuple[bool, Bytes, int, int]:
        return self[:4]


class _Problem:
    """One search: both layouts, and the laws of the mesh."""

    def __init__(self, source: Layout, target: Layout, itemsize: int, mesh: Mesh, laws: Laws) -> None:
        self.source, self.itemsize, self.mesh, self.laws = source, itemsize, mesh, laws
        self.shape = source.global_shape(mesh)
        self.limit = max(self.local(source), self.local(target))

    def local(self, layout: Layout) -> int:
        """The local bytes of the value in this layout."""
        return prod(layout.local_shape(self.mesh)) * self.itemsize

    def search(self, naive: Spine) -> _Found:
        """The best of the terms that the laws lead to."""
        best = self.price(naive)
        assert best is not None, "the naive composition is always valid"
        start, order = self.laws.settle(naive), count()
        heap, seen = [(best.key, next(order), start)], {start}
        if (settled := self.price(start)) is not None and settled.key < best.key:
            best = settled
        while heap and len(seen) < PATIENCE:
            for better in self.laws.moves(heappop(heap)[-1]):
                if better in seen:
                    continue
                seen.add(better)
                if (found := self.price(better)) is not None:
                    heappush(heap, (found.key, next(order), better))
                    best = found if found.key < best.key else best
        return best

    def price(self, spine: Spine) -> _Found | None:
        """The cost of the term; None if an intermediate layout is invalid."""
        at: Spots = {factor.name: (dim, factor) for dim, factor in self.source.factors(self.mesh)}
        steps: list[Step] = []
        sizes: list[int] = []
        now = self.source
        size = largest = self.local(now)
        for op in reversed(spine):
            step = Step.known[cast(str, op[0])].of(*op[1:])
            dim = step.place(at, self.mesh)
            if dim is not None and not self.fits(dim, [factor for on, factor in at.values() if on == dim]):
                return None
            after = Layout.of(self.shape, at.values())
            before_size, size = size, self.local(after)
            sizes.append(max(before_size, size))
            bytes = step.received(sizes[-1], devices(step.axes, self.mesh))
            steps.append(replace(step, axes=in_order(step.axes, self.mesh), bytes=bytes, before=now, after=after))
            now, largest = after, max(largest, size)
        together = merged(steps, sizes, self.mesh)
        talking = sum(step.communicates for step in together)
        return _Found(largest > self.limit, sum(step.bytes for step in together), talking, sum(sizes), together)

    def fits(self, dim: int, factors: list[Factor]) -> bool:
        return fit(self.shape[dim], factors) and not is_padded(self.shape[dim], factors)
