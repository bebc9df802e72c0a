"""What moves cost in small programs: by the path search, asked once for all moves that differ only in how large blocks are.

    [a*512, 64] to [1024, a*32], a=2   -->   512 * 32 times the bytes of [a*1, 2] to [2, a*1]

A device receives at least what it lacks. That is known without a search, so that most moves need none.
"""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np

from partita.dialects.layouts import Layout
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import local_block
from partita.rewrites.redistribute.search import Path, path

Held: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Costs: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


TIE = 2.0**-8
"""What a collective weighs beside a byte: all of them together less than a part of a byte."""


def weight(way: Path) -> float:
    """What a path costs: the bytes that a device receives and, of equals, the collectives."""
    return float(way.bytes) + TIE * way.collectives


def moved(source: Layout, target: Layout, width: int, devices: int) -> float:
    """What it costs to move a value whose elements have so many bytes, on a mesh of so many devices."""
    if source is target:
        return 0
    if any(each.scans for each in source.pending):
        return weight(path(source, target, width))
    (before, many), (after, _) = shrunk(source, devices), shrunk(target, devices)
    received, collectives = searched(before, after)
    return received * many * width + TIE * collectives


@cache
def shrunk(layout: Layout, devices: int) -> tuple[Layout, int]:
    """The layout of an array with one element of each dim for each device, and how many elements one of these stands for."""
    extents = layout.global_shape
    units = [extent // devices if extent % devices == 0 else 1 for extent in extents]
    factors = [(dim, factor.at(factor.stride // units[dim])) for dim, factor in layout.factors]
    shape = [extent // one for extent, one in zip(extents, units, strict=True)]
    return Layout.of(shape, factors, layout.pending), prod(units)


@cache
def searched(source: Layout, target: Layout) -> tuple[float, int]:
    """Bytes and collectives of a move, asked of the search with the dims in one order: in another one it costs the same."""
    ends = source, target
    order = sorted(range(source.rank), key=lambda dim: [*map(str, (source.dims[dim], target.dims[dim]))])
    if order != sorted(order):
        return searched(*(reordered(layout, order) for layout in ends))
    way = path(*ends, 1)
    return float(way.bytes), way.collectives


def reordered(layout: Layout, order: Sequence[int]) -> Layout:
    return Layout(tuple(layout.dims[dim] for dim in order), layout.pending)


def lacks(sources: Sequence[Layout], targets: Sequence[Layout], mesh: Mesh) -> Costs:
    """The elements that a device receives at least from each source for each two targets: [source, target, target].

    It receives what it lacks of both. Of a sum over n devices it is to hold t elements. Each element of the sum takes n - 1
    receipts to be added up on one device, and one more for every other device that is to hold it.
    """
    devices = mesh.size
    starts, ends = ([shrunk(each, devices) for each in layouts] for layouts in (sources, targets))
    shape = prod(starts[0][0].global_shape), starts[0][1]
    own, shared, wanted, both = (np.ones(1) for _ in range(4))
    for dim in range(sources[0].rank):
        here, there = (np.stack([holdings(each, mesh, dim) for each, _ in layouts], 1) for layouts in (starts, ends))
        wanted = wanted * there.sum(2)
        own = own * (here @ there.swapaxes(1, 2))
        shared = shared * (there @ there.swapaxes(1, 2))
        both = both * np.einsum("dse,dte,due->dstu", here, there, there, optimize=True)
    union = wanted[:, :, None] + wanted[:, None] - shared
    lack = (union[:, None] - own[..., None] - own[:, :, None] + both).max(0)
    over = np.array([[prod(p.axis.size for p in {*s.pending} - {*t.pending}) for t in targets] for s in sources])
    least, most = (function(over[:, :, None], over[:, None]) for function in (np.minimum, np.maximum))
    sums = union.mean(0) + (least - 2) * shape[0] / devices
    # Of a sum that waits in one of the targets and not in the other, each is moved alone.
    found = np.where(least > 1, sums, np.where(most > 1, 0, lack))
    alone = np.einsum("stt->st", found)
    return np.maximum(found, np.maximum(alone[:, :, None], alone[:, None])) * shape[1]


@cache
def holdings(layout: Layout, mesh: Mesh, dim: int) -> Held:
    """Which elements of a dim each device holds."""
    extent = layout.global_shape[dim]
    found = np.zeros((mesh.size, extent), np.int64)
    for device, coordinates in enumerate(mesh.coordinates()):
        found[device, [each for each in local_block(layout.dims[dim], coordinates) if each is not None]] = 1
    return found
