"""Which blocks of a value cross from one device set to another, and what is redistributed on both sides.

A block is sent from a device that has it to one that wants it. Either the source makes the blocks of the target first, or the
target receives the blocks of the source, and makes its own of them: whichever way a device receives fewer bytes.

    [left*2, 8], left=4, to [8, 8] on right=4   -->   [left*2, 8] to [right*2, 8], and an all_gather there
"""

from __future__ import annotations

from math import gcd, prod

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...dialects.ranges.algebra import Axis, Place, SubAxis
from ...dialects.ranges.factor import Factor
from .search import path
from .steps import Bytes


def blocks_between(have: Layout, wanted: Layout, sets: tuple[Mesh, Mesh], itemsize: int) -> tuple[Layout, Layout]:
    """The layout in which a value leaves a device set, and that in which it arrives on another one."""
    here = have if have.covers(wanted) else blocks_on(sets[0], wanted, have)
    there = blocks_on(sets[1], have, wanted)
    ways = [(here, wanted)] + [(have, there)] * have.covers(there)

    def received(ends: tuple[Layout, Layout]) -> Bytes:
        sent, arrives = ends
        block = itemsize * prod(arrives.local_shape)
        return path(have, sent, itemsize).bytes + block + path(arrives, wanted, itemsize).bytes

    return min(ways, key=received)


def blocks_on(mesh: Mesh, wanted: Layout, source: Layout) -> Layout:
    """The layout on the axes of a mesh whose blocks are those of a layout on another mesh, or the smallest that contain them.

    The axes on which a dim lies now are taken first, so that less moves.

    ```
    [right*16, 8] with right=4, on left=8   -->   [left.0:4*16, 8]
    ```
    """
    shape, blocks = wanted.global_shape, list[tuple[int, Place, int]]()
    left = {axis: axis.size for axis in mesh.whole().places if isinstance(axis, Axis)}
    taken = {axis: list[tuple[int, int]]() for axis in left}
    for dim, (extent, block) in enumerate(zip(shape, wanted.local_shape, strict=True)):
        parts = extent // block if block else 1
        own = [factor.axis.axis for factor in source.at(dim)]
        for axis in sorted(left, key=lambda axis: axis not in own):
            size = gcd(parts, left[axis])
            if size > 1:
                taken[axis].append((dim, size))
                left[axis] //= size
                parts //= size
    for axis, pieces in taken.items():
        split = (*(size for _, size in pieces), *([left[axis]] if left[axis] > 1 else []))
        places = [axis] if len(split) == 1 else [SubAxis(axis, split, at) for at in range(len(split))]
        blocks += [(dim, place, size) for (dim, size), place in zip(pieces, places, strict=False)]
    factors = list[tuple[int, Factor]]()
    rest = list(shape)
    for dim, place, size in blocks:
        rest[dim] //= size
        factors.append((dim, Factor(place, rest[dim])))
    return Layout.of(shape, factors)
