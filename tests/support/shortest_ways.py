"""The oracles of redistribution.

What a device lacks: the most elements that a device is to hold and does not hold. No way receives less. Only sets of
elements are compared.

The least bytes of whole steps: by Dijkstra over all layouts to which slices, collectives of JAX and permutes lead. A state says
for each axis of the mesh where it is: on a dim at a stride, pending, or nowhere.

    {a: (0, 4), b: None}   -- slice b -->   {a: (0, 4), b: (1, 2)}   -- all_to_all a -->   ...

Run as a script, it compares every pair of layouts of all shapes below, which takes an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import count, pairwise, permutations, product
from math import gcd, prod
from random import Random
from typing import Any

import numpy as np
from tiles import layout

from partita.dialects.layouts import Layout, Pending
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import Place, Range, local_block
from partita.dialects.ranges.factor import Factor, fit, padded
from partita.rewrites.redistribute.kinds.all_gather import AllGather
from partita.rewrites.redistribute.kinds.all_to_all import AllToAll
from partita.rewrites.redistribute.kinds.folds import AllReduce, ReduceScatter
from partita.rewrites.redistribute.kinds.permute import Permute
from partita.rewrites.redistribute.search import path
from partita.rewrites.redistribute.steps import Bytes, devices

Spot = tuple[int, int] | str | None
"""A dim and a stride; or the monoid of a pending reduction; or nowhere."""
State = tuple[Spot, ...]
"""A spot for each axis of the mesh."""


WHOLE = (Mesh(a=2), Mesh(a=2, b=2), Mesh(a=2, b=3), Mesh(a=2, b=2, c=2))
SPLIT = (Mesh(a=4), Mesh(a=4).refine(a=(2, 2)), Mesh(a=2, b=4), Mesh(a=2, b=4).refine(b=(2, 2)))
MESHES = (*WHOLE, *SPLIT)
SHAPES = ((4,), (6,), (8,), (12,), (4, 4), (4, 6), (6, 6), (8, 4), (8, 8), (12, 12), (2, 2, 2), (4, 4, 4), (12, 6, 4))


class Ways:
    """All layouts of a shape on a mesh, and the steps between them that use some of its axes."""

    def __init__(self, shape: tuple[int, ...], mesh: Mesh, itemsize: int = 1) -> None:
        self.shape, self.mesh, self.itemsize = shape, mesh, itemsize
        self.axes = list(mesh)
        self.sizes = [mesh[axis] for axis in mesh]
        self.fits = cache(self._fits)
        self.moves = cache(self._moves)
        self.least = cache(self._least)

    def layouts(self) -> list[State]:
        """Every layout without a pending reduction."""
        return [each for each in product(*([None, *self.spots(size)] for size in self.sizes)) if self.valid(each)]

    def spots(self, size: int) -> list[tuple[int, int]]:
        return [(dim, s) for dim, n in enumerate(self.shape) for s in range(1, n) if n % (s * size) == 0]

    def valid(self, at: State) -> bool:
        return all(self.fits(dim, tuple(sorted(self.on(at, dim)))) for dim in range(len(self.shape)))

    def on(self, at: State, dim: int) -> list[tuple[int, int]]:
        """The factors on a dim: their strides and sizes."""
        return [
            (spot[1], size) for spot, size in zip(at, self.sizes, strict=True) if isinstance(spot, tuple) and spot[0] == dim
        ]

    def _fits(self, dim: int, factors: tuple[tuple[int, int], ...]) -> bool:
        return tiles(self.shape[dim], list(factors))

    def local(self, at: State) -> int:
        """The local bytes."""
        placed = prod(size for spot, size in zip(at, self.sizes, strict=True) if isinstance(spot, tuple))
        return prod(self.shape) // placed * self.itemsize

    def bytes(self, source: State, target: State) -> tuple[bool, Bytes]:
        """Whether the local size has to grow beyond both ends, and the least bytes."""
        limit = max(self.local(source), self.local(target))
        both = frozenset(n for n, (a, b) in enumerate(zip(source, target, strict=True)) if a is not None or b is not None)
        for most in (limit, prod(self.shape) * self.itemsize):
            if target in (found := self.least(source, both, most)):
                return most > limit, found[target]
        raise AssertionError("gathering everything leads everywhere")

    def _least(self, source: State, used: frozenset[int], most: int) -> Mapping[State, Bytes]:
        """The least bytes from a layout to every other one through layouts that are no larger than `most`."""
        done: dict[State, Bytes] = {}
        order = count()
        heap: list[tuple[Bytes, int, State]] = [(0, 0, source)]
        while heap:
            paid, _, at = heappop(heap)
            if at in done:
                continue
            done[at] = paid
            for after, more in self.moves(at, used):
                if after not in done and self.local(after) <= most:
                    heappush(heap, (paid + more, next(order), after))
        return done

    def _moves(self, at: State, used: frozenset[int]) -> list[tuple[State, Bytes]]:
        everything = (
            *self.placings(at, used),
            *self.gathers(at),
            *self.exchanges(at),
            *self.permutes(at, used),
            *self.folds(at),
        )
        return [(after, more) for after, more in everything if self.valid(after)]

    def placings(self, at: State, used: frozenset[int]) -> Iterator[tuple[State, Bytes]]:
        """Slices, and reduce_scatters."""
        for n, spot in enumerate(at):
            if n in used and (spot is None or spot == "add"):
                more = 0 if spot is None else ReduceScatter.received(self.local(at), self.sizes[n])
                yield from ((put(at, {n: place}), more) for place in self.spots(self.sizes[n]))

    def gathers(self, at: State) -> Iterator[tuple[State, Bytes]]:
        for n, spot in enumerate(at):
            if isinstance(spot, tuple):
                after = put(at, {n: None})
                yield after, AllGather.received(self.local(after), self.sizes[n])

    def folds(self, at: State) -> Iterator[tuple[State, Bytes]]:
        pending = [n for n, spot in enumerate(at) if isinstance(spot, str)]
        for some in subsets(pending):
            yield put(at, dict.fromkeys(some)), AllReduce.received(self.local(at), prod(self.sizes[n] for n in some))

    def exchanges(self, at: State) -> Iterator[tuple[State, Bytes]]:
        """All_to_alls: neighbours on a dim, major to minor, become neighbours elsewhere."""
        for group in self.groups(at):
            sizes, empty = [self.sizes[n] for n in group], (None,) * len(at)
            for to, stride in self.spots(prod(sizes)):
                spots = {n: (to, stride * prod(sizes[k + 1 :])) for k, n in enumerate(group)}
                after = put(at, spots)
                if not self.fits(to, tuple(sorted((*self.on(at, to), *self.on(put(empty, spots), to))))):
                    continue  # no device has a part for every other one
                if after != at:
                    yield after, AllToAll.received(self.local(at), prod(sizes))

    def groups(self, at: State) -> Iterator[tuple[int, ...]]:
        placed = [n for n, spot in enumerate(at) if isinstance(spot, tuple)]
        for some in subsets(placed):
            for group in permutations(some):
                if all(self.follows(at[n], at[m], self.sizes[m]) for n, m in pairwise(group)):
                    yield group

    @staticmethod
    def follows(major: Spot, minor: Spot, size: int) -> bool:
        assert isinstance(major, tuple)
        assert isinstance(minor, tuple)
        return major == (minor[0], minor[1] * size)

    def permutes(self, at: State, used: frozenset[int]) -> Iterator[tuple[State, Bytes]]:
        """Every layout whose parts are those of this one, on other devices."""
        runs = self.runs(at)
        free = [n for n in used if not isinstance(at[n], str)]
        empty = put(at, dict.fromkeys(free))
        for after in self.filled(empty, runs, free):
            if after != at:
                yield after, Permute.received(self.local(at), 1)

    def filled(self, at: State, runs: tuple[tuple[int, int, int], ...], free: list[int]) -> Iterator[State]:
        if not runs:
            yield at
            return
        (dim, low, size), *rest = runs
        for n in free:
            if size % self.sizes[n] == 0:
                less = size // self.sizes[n]
                left = [(dim, low, less)] if less > 1 else []
                yield from self.filled(put(at, {n: (dim, low * less)}), (*left, *rest), [m for m in free if m != n])

    def runs(self, at: State) -> tuple[tuple[int, int, int], ...]:
        """What is placed: dims, lowest strides, and how many parts there are, with neighbours as one."""
        found: list[tuple[int, int, int]] = []
        for dim in range(len(self.shape)):
            for stride, size in sorted(self.on(at, dim)):
                if found and found[-1][0] == dim and found[-1][1] * found[-1][2] == stride:
                    found[-1] = dim, found[-1][1], found[-1][2] * size
                else:
                    found.append((dim, stride, size))
        return tuple(found)


class Padded:
    """All layouts of a shape, padded ones too, and the steps between them: Dijkstra as above, on sets of elements.

    Each dim is as long as its own axes need it; during a step, as long as those before and after it need it.
    """

    def __init__(self, shape: tuple[int, ...], mesh: Mesh) -> None:
        self.shape, self.mesh = shape, mesh
        self.layouts = all_layouts(shape, mesh, pad=True)
        self.placed = [{factor.axis: (dim, factor) for dim, factor in each.factors} for each in self.layouts]
        self.number = {frozenset(each.items()): at for at, each in enumerate(self.placed)}
        self.held = np.stack([self.elements(each) for each in self.layouts])
        self.local = [prod(each.local_shape) for each in self.layouts]
        self.moves = cache(self._moves)

    def elements(self, layout: Layout) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which device holds which element."""
        found = np.zeros((self.mesh.size, *self.shape), np.bool_)
        for device in range(self.mesh.size):
            found[(device, *np.ix_(*(elements(dim, self.mesh, device) for dim in layout.dims)))] = True
        return found.reshape(self.mesh.size, -1)

    def least(self, source: Layout) -> dict[Layout, Bytes]:
        """The least bytes, of elements of one byte, from a layout to every other one."""
        done: dict[int, Bytes] = {}
        heap: list[tuple[Bytes, int]] = [(0, self.layouts.index(source))]
        while heap:
            paid, at = heappop(heap)
            if at not in done:
                done[at] = paid
                for after, more in self.moves(at):
                    heappush(heap, (paid + more, after))
        return {self.layouts[at]: paid for at, paid in done.items()}

    def _moves(self, at: int) -> list[tuple[int, Bytes]]:
        """Slices, permutes, gathers of some axes of a dim or several, and all_to_alls of neighbours."""
        here = self.placed[at]
        alone = [(int(to), 0) for to in np.flatnonzero(~(self.held & ~self.held[at]).any((1, 2)))]
        permutes = [(to, self.local[at]) for to in range(len(self.layouts)) if self.swaps(at, to)]
        moved: list[tuple[int, Bytes]] = []
        for some in subsets(list(range(len(here)))):
            axes = [axis for number, axis in enumerate(here) if number in some]
            group = devices(axes)
            left = frozenset((axis, spot) for axis, spot in here.items() if axis not in axes)
            if left in self.number:
                moved.append((self.number[left], self.local[at] * (group - 1)))
            for to in range(len(self.layouts)):
                if (length := self.exchanged(at, to, axes)) is not None:
                    parts = devices(here)
                    moved.append((to, AllToAll.received(prod(length) // parts, group)))
        return [*alone, *permutes, *moved]

    def swaps(self, at: int, to: int) -> bool:
        """Whether each device's part is another one's in the other layout."""
        same = self.layouts[at].local_shape == self.layouts[to].local_shape
        return same and sorted(map(bytes, self.held[at])) == sorted(map(bytes, self.held[to]))

    def exchanged(self, at: int, to: int, axes: list[Place]) -> tuple[int, ...] | None:
        """The lengths of the dims during an all_to_all that moves these axes and no others; None if there is none."""
        here, there = self.placed[at], self.placed[to]
        if at == to or here.keys() != there.keys() or any(here[axis] != there[axis] for axis in here if axis not in axes):
            return None
        order = sorted(axes, key=lambda axis: -here[axis][1].stride)
        for spots in (here, there):
            if any(spots[m][0] != spots[n][0] or spots[m][1].stride != spots[n][1].span for m, n in pairwise(order)):
                return None
        ends = zip(*(self.layouts[end].padded_shape for end in (at, to)), strict=True)
        length = tuple(max(each) for each in ends)
        (dim, _), (onto, _) = here[axes[0]], there[axes[0]]
        after = [(factor.stride, factor.size) for on, factor in there.values() if on == onto]
        before = [(factor.stride, factor.size) for on, factor in here.values() if on == dim]
        both = before + [(there[axis][1].stride, there[axis][1].size) for axis in axes] if dim == onto else before
        return length if tiles(length[dim], both) and tiles(length[onto], after) else None


def tiles(length: int, factors: list[tuple[int, int]]) -> bool:
    """Whether factors, strides and sizes, divide a length together."""
    for stride, size in sorted(factors, reverse=True):
        if length % (stride * size):
            return False
        length = stride
    return True


def busiest(source: Layout, target: Layout, mesh: Mesh) -> int:
    """The most that a device lacks, or that one of the devices with the same part has to send if each sends as much.

    What moves are blocks, of the dims that differ, that hold an element.
    """
    shape, local = source.global_shape, source.local_shape
    dims = [dim for dim in range(len(shape)) if source.dims[dim] is not target.dims[dim]]
    blocks = {dim: gcd(*(factor.stride for end in (source, target) for factor in end.at(dim))) for dim in dims}
    have, want = (
        [
            {*product(*({n // size for n in elements(end.dims[dim], mesh, device)} for dim, size in blocks.items()))}
            for device in range(mesh.size)
        ]
        for end in (source, target)
    )
    lacks = [wanted - own for own, wanted in zip(have, want, strict=True)]
    sent = [-(-sum(len(own & each) for each in lacks) // have.count(own)) for own in have if own]
    unit = prod(blocks.get(dim, size) for dim, size in enumerate(local))
    return unit * max([*map(len, lacks), *sent])


def put(at: State, spots: Mapping[int, Spot]) -> State:
    return tuple(spots.get(n, spot) for n, spot in enumerate(at))


def subsets(of: list[int]) -> Iterator[tuple[int, ...]]:
    """Every subset but the empty one."""
    for chosen in product((False, True), repeat=len(of)):
        if any(chosen):
            yield tuple(n for n, here in zip(of, chosen, strict=True) if here)


def lack(source: Layout, target: Layout, mesh: Mesh) -> int:
    """The most elements that a device is to hold and does not."""
    lacks: list[int] = []
    for device in range(mesh.size):
        held, wanted = ([{*elements(dim, mesh, device)} for dim in end.dims] for end in (source, target))
        lacks.append(prod(map(len, wanted)) - prod(len(own & each) for own, each in zip(held, wanted, strict=True)))
    return max(lacks)


@cache
def elements(dim: Range, mesh: Mesh, device: int) -> list[int]:
    return [each for each in local_block(dim, list(mesh.coordinates())[device]) if each is not None]


@cache
def all_layouts(shape: tuple[int, ...], mesh: Mesh, pad: bool = False) -> list[Layout]:
    """Every layout; with `pad` also those whose major factor reaches beyond a dim, no further than evenly."""
    found: set[Layout] = set()

    def spots(axis: str) -> list[tuple[int, Factor] | None]:
        made = ((dim, Factor(mesh.place(axis), stride)) for dim, n in enumerate(shape) for stride in range(1, n + 1))
        return [None, *(each for each in made if each[1].span < shape[each[0]] + mesh.size)]

    for at in product(*map(spots, mesh)):
        factors = [each for each in at if each is not None]
        dims = [[factor for on, factor in factors if on == dim] for dim in range(len(shape))]
        if all(fit(n, on) and padded(n, on) <= (evenly(n, on) if pad else n) for n, on in zip(shape, dims, strict=True)):
            found.add(Layout.of(shape, factors))
    return sorted(found, key=str)


def evenly(extent: int, factors: Sequence[Factor]) -> int:
    group = prod(factor.size for factor in factors)
    return group * -(-extent // group)


def found(source: State, target: State, shape: tuple[int, ...], mesh: Mesh) -> tuple[bool, Bytes]:
    """Whether the local size grows beyond both ends on the way of the compiler, and its bytes."""
    axes = list(mesh)
    pending = [Pending(spot, mesh.places[n]) for n, spot in enumerate(source) if isinstance(spot, str)]
    ends = [
        layout(shape, [(axes[n], *spot) for n, spot in enumerate(at) if isinstance(spot, tuple)], mesh)
        for at in (source, target)
    ]
    way = path(ends[0].with_pending(tuple(pending)), ends[1], 1)
    limit = max(prod(end.local_shape) for end in ends)
    return any(prod(step.after.local_shape) > limit for step in way.steps), way.bytes


def best(source: Layout, target: Layout, mesh: Mesh) -> bool:
    """Whether the compiler's way receives what a device lacks, through layouts that are no larger than both ends."""
    way, limit = path(source, target, 1), max(prod(end.local_shape) for end in (source, target))
    return way.bytes == lack(source, target, mesh) and all(prod(step.after.local_shape) <= limit for step in way.steps)


def compare(shape: tuple[int, ...], mesh: Mesh, most: int | None = None) -> int:
    """Compares the compiler's ways between layouts with what devices lack: all pairs, or so many; how many there are."""
    pairs = list(product(all_layouts(shape, mesh), repeat=2))
    for source, target in pairs if most is None else Random(0).sample(pairs, min(most, len(pairs))):
        assert best(source, target, mesh), (str(mesh), str(source), str(target))
    return len(pairs)


if __name__ == "__main__":
    for mesh, shape in product(MESHES, SHAPES):
        print(mesh, shape, compare(shape, mesh), flush=True)
