"""Combines scans of blocks into a scan of the whole array, on one device: the law `scanned`, and its `across`.

Each block's total is the last element of its scan. The totals of all blocks are gathered and scanned. The scan up to the block
before is the carry that a block adds to its own elements. Over a loop alone, each trip has that from the trip before it.

    %y = cumsum of a block   -->   %t = slice %y, last; %ts = all_gather %t; %s = cumsum %ts; %y + %s[coordinate - 1]
"""

from __future__ import annotations

from functools import partial, reduce

from xdsl.ir import Block, SSAValue

from ...dialects import spmd
from ...dialects.ground.dtypes import itemsize
from ...dialects.ground.monoids import MONOIDS
from ...dialects.layouts import Layout, Pending
from ..emit import IDS, Appending, Emitter, Shape, type_at
from ..redistribute.kinds.folds import Exscan
from ..redistribute.search import totals


class Across:
    """One scan of blocks. `layout` is the value's layout; `scan` is its pending scan, or one of several along the same dim."""

    def __init__(self, local: SSAValue, layout: Layout, scan: Pending, block: Block) -> None:
        self.local = local
        self.block = block
        self.layout = layout
        self.emit = Emitter(Appending(block))
        self.monoid, self.dim, self.backwards = MONOIDS[scan.monoid], scan.dim, scan.backwards
        self.type = type_at(local)
        self.steps = totals(layout, scan, itemsize(self.type.dtype)).steps
        """The steps that gather the totals of all blocks, or fold those before each block."""

    @property
    def length(self) -> int:
        """The length of a block."""
        return self.type.shape[self.dim]

    def total(self) -> SSAValue:
        """Emits the fold of a whole block: the last element of its scan."""
        return self.emit.part(self.local, self.dim, 0 if self.backwards else self.length - 1)

    def finish(self, arrived: SSAValue) -> SSAValue:
        """Emits the block of the whole scan, from the totals of all blocks, or from the fold of those before it.

        The first block stays as it is: to fold the unit into it would change the sign of its zeros.
        """
        emit, rank = self.emit, self.rank()
        match self.steps:
            case [Exscan(axes=[loop])]:
                before, count = arrived, loop.size
            case _:
                before, count = self.before(arrived, rank), type_at(arrived).shape[self.dim]
        before = emit.spread(before, self.type.shape, tuple(range(len(self.type.shape))))
        alone = emit.spread(emit.equals(rank, count - 1 if self.backwards else 0), self.type.shape)
        joined = emit.folded(self.monoid.name, before, self.local)
        return self.bounded(emit.apply("select_n", alone, joined, self.local), rank)

    def before(self, totals: SSAValue, rank: SSAValue) -> SSAValue:
        """Emits the fold of the blocks before this one, from the totals of all."""
        emit, type = self.emit, type_at(totals)
        scan = {"axis": self.dim, "reverse": self.backwards}
        scanned = emit.make(self.monoid.scan, (totals,), type.dtype, type.shape, **scan)
        beside = emit.apply("add", rank, 1 if self.backwards else -1)
        beside = emit.apply("clamp", 0, beside, type.shape[self.dim] - 1)
        starts = [beside if dim == self.dim else emit.number(0, IDS) for dim in range(len(type.shape))]
        return emit.make("dynamic_slice", (scanned, *starts), type.dtype, self.one())

    def bounded(self, scanned: SSAValue, rank: SSAValue) -> SSAValue:
        """Fills the scan with zeros where blocks that begin elsewhere are outside of the array, as their readers expect."""
        emit, window = self.emit, self.layout.windows(self.dim)
        extent = self.layout.global_shape[self.dim]
        if window is None or not window.overhangs(extent):
            return scanned
        start = emit.apply("sub", emit.apply("mul", rank, window.stride), window.before)
        return emit.inside(scanned, self.dim, start, extent, emit.unit("add", self.type.dtype))

    def rank(self) -> SSAValue:
        """Emits the number of this device's block."""
        emit, parts = self.emit, list[SSAValue]()
        for factor in self.layout.at(self.dim):
            op = spmd.CoordinateOp([factor.axis])
            self.block.add_op(op)
            parts.append(emit.apply("mul", op.out, factor.stride // self.length))
        return reduce(partial(emit.apply, "add"), parts)

    def one(self) -> Shape:
        """The shape of one element of the dim."""
        return tuple(1 if dim == self.dim else extent for dim, extent in enumerate(self.type.shape))
