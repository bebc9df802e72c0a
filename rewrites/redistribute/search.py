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
from functools import cache
from heapq import heappop, heappush
from itertools import count
from math import prod
from typing import NamedTuple

from ...dialects.layouts import Pending, chain_ok
from ...dialects.mesh import Mesh
from .collective_terms import Laws, Op, Spine, laws_on
from .steps import Bytes, Path, Step, Tile, Tiles, merged, received

__all__ = ["Path", "Step", "Tile", "path"]

# The most terms that one search visits; ordinary searches end after a handful.
PATIENCE = 400


@cache
def path(
    shape: tuple[int, ...],
    itemsize: int,
    source: Tiles,
    pending: tuple[Pending, ...],
    target: Tiles,
    mesh: Mesh,
) -> Path:
    """The cheapest steps from `source` tiles with `pending` sums to `target` tiles, and their bytes.

    The cost is the bytes received by a device, then the number of collectives. Pending scans and folds without
    a collective are done first. Leave out pending sums that stay pending. Memoised for the process.

    ```
    path((512, 512), 4, (("data", 0, 128),), (), (("data", 1, 128),), Mesh(data=4))
        -->  all_to_all over (data) 0@128 to 1@128: 196608 bytes
    ```
    """
    source, target = _placed(source, mesh), _placed(target, mesh)
    pending = tuple(each for each in pending if mesh[each.axis] > 1)
    scans, folds = tuple(each for each in pending if each.scans), tuple(each for each in pending if each.is_gathered)
    if early := scans or folds:
        before = (totals if scans else parts)(shape, itemsize, source, early, mesh)
        rest = path(shape, itemsize, source, tuple(each for each in pending if each not in early), target, mesh)
        return Path(before.steps + rest.steps, before.bytes + rest.bytes)
    problem = _Problem(shape, itemsize, source, target, mesh, laws_on(mesh))
    best = problem.search(_naive(source, pending, target))
    return Path(best.steps, best.bytes)


def totals(shape: tuple[int, ...], itemsize: int, source: Tiles, scans: tuple[Pending, ...], mesh: Mesh) -> Path:
    """The step that combines scans of blocks: every device gathers the totals of all blocks.

    ```
    f32[data*64, 8]{+data before 0}   -->   all_gather of f32[data*1, 8]
    ```
    """
    dim = scans[0].dim
    strides = [stride for _, at, stride in source if at == dim]
    block = min(strides)
    blocks = (*shape[:dim], shape[dim] // block, *shape[dim + 1 :])
    apart = tuple((axis, at, stride // block if at == dim else stride) for axis, at, stride in source)
    return path(blocks, itemsize, apart, (), tuple(tile for tile in apart if tile[1] != dim), mesh)


def parts(shape: tuple[int, ...], itemsize: int, source: Tiles, folds: tuple[Pending, ...], mesh: Mesh) -> Path:
    """The step before a fold that has no collective: every device gathers the parts of all devices, on a new first dim.

    ```
    f32[8, 8]{mul data}   -->   all_gather of f32[data*1, 8, 8]
    ```
    """
    stacked = (prod(mesh[each.axis] for each in folds), *shape)
    inner = tuple((axis, dim + 1, stride) for axis, dim, stride in source)
    strides = [prod(mesh[minor.axis] for minor in folds[at + 1 :]) for at in range(len(folds))]
    outer = tuple((each.axis, 0, stride) for each, stride in zip(folds, strides, strict=True))
    return path(stacked, itemsize, (*outer, *inner), (), inner, mesh)


def _placed(tiles: Tiles, mesh: Mesh) -> Tiles:
    """The tiles on axes of more than one device, in a fixed order."""
    return tuple(sorted(tile for tile in tiles if mesh[tile[0]] > 1))


def _naive(source: Tiles, pending: Sequence[Pending], target: Tiles) -> Spine:
    """Resolve, replicate, slice; outermost step first."""
    cut = [("slice", *tile) for tile in target if tile not in source]
    whole = [("all_gather", *tile) for tile in source if tile not in target]
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
    """One search: the array, both layouts, and the laws of the mesh."""

    def __init__(self, shape: tuple[int, ...], itemsize: int, source: Tiles, target: Tiles, mesh: Mesh, laws: Laws) -> None:
        self.shape, self.source, self.mesh, self.laws = shape, source, mesh, laws
        self.whole = prod(shape) * itemsize
        self.limit = max(self.local(source), self.local(target))

    def local(self, tiles: Sequence[Tile]) -> int:
        return self.whole // prod(self.mesh[axis] for axis, _, _ in tiles)

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
        tiles = {axis: (dim, stride) for axis, dim, stride in self.source}
        steps: list[Step] = []
        sizes: list[int] = []
        now = self.source
        size = largest = self.local(now)
        for op in reversed(spine):
            dims = _apply(op, tiles, self.mesh)
            if not all(self.valid(tiles, dim) for dim in dims):
                return None
            after = tuple(sorted((axis, dim, stride) for axis, (dim, stride) in tiles.items()))
            before_size, size = size, self.local(after)
            sizes.append(max(before_size, size))
            steps.append(_step(op, now, after, sizes[-1], self.mesh))
            now, largest = after, max(largest, size)
        together = merged(steps, sizes, self.mesh)
        talking = sum(step.kind != "slice" for step in together)
        return _Found(largest > self.limit, sum(step.bytes for step in together), talking, sum(sizes), together)

    def valid(self, tiles: dict[str, tuple[int, int]], dim: int) -> bool:
        factors = [(stride, self.mesh[axis]) for axis, (on, stride) in tiles.items() if on == dim]
        return chain_ok(self.shape[dim], factors)


def _apply(op: Op, tiles: dict[str, tuple[int, int]], mesh: Mesh) -> tuple[int, ...]:
    """Changes `tiles` as the step does; the dimensions whose tiles may have come to overlap."""
    match op:
        case ("slice", str(axis), int(dim), int(stride)) | ("reduce_scatter", _, str(axis), int(dim), int(stride)):
            tiles[axis] = (dim, stride)
            return (dim,)
        case ("all_gather", str(axis), _, _):
            del tiles[axis]
        case ("all_to_all", str(axis), _, _, int(dim), int(stride)):
            tiles[axis] = (dim, stride)
            return (dim,)
        case ("permute", str(a), str(b)):
            exchanged = {a: tiles.pop(b, None), b: tiles.pop(a, None)}
            tiles.update({axis: place for axis, place in exchanged.items() if place is not None})
        case ("reorder", str(a), str(b), int(dim), int(stride)):
            tiles[a], tiles[b] = (dim, stride), (dim, stride * mesh[a])
        case _:
            pass
    return ()


def _step(op: Op, before: Tiles, after: Tiles, larger: int, mesh: Mesh) -> Step:
    def step(kind: str, axes: tuple[str, ...]) -> Step:
        return Step(kind, axes, received(kind, larger, prod(mesh[axis] for axis in axes)), before, after)

    match op:
        case ("all_reduce", str(monoid), str(axis)):
            made = step("all_reduce", (axis,))
            return Step(made.kind, made.axes, made.bytes, before, after, monoid)
        case ("reduce_scatter", str(monoid), str(axis), int(dim), int(stride)):
            made = step("reduce_scatter", (axis,))
            return Step(made.kind, made.axes, made.bytes, before, after, monoid, dim, stride)
        case ("all_to_all", str(axis), int(dim), int(stride), int(to_dim), int(to_stride)):
            made = step("all_to_all", (axis,))
            return Step(made.kind, made.axes, made.bytes, before, after, "", dim, stride, to_dim, to_stride)
        case ("permute" | "reorder", str(a), str(b), *_):
            return step("permute", tuple(axis for axis in mesh if axis in (a, b)))
        case (str(kind), str(axis), int(dim), int(stride)):
            made = step(kind, (axis,))
            return Step(kind, made.axes, made.bytes, before, after, "", dim, stride)
        case _:
            raise ValueError(f"no step: {op}")
