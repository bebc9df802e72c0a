"""Combines scans of blocks into a scan of the whole array, on one device: the law `scanned`, and its `across`.

Each block's total is the last element of its scan. The totals of all blocks are gathered and scanned. The scan up to the block
before is the carry that a block adds to its own elements.

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
from ..redistribute.search import totals
from ..redistribute.steps import Step


class Across:
    """One scan of blocks. `layout` is the value's layout; `scan` is its pending scan, or one of several along the same dim."""

    def __init__(self, local: SSAValue, layout: Layout, scan: Pending, block: Block) -> None:
        self.local = local
        self.block = block
        self.layout = layout
        self.emit = Emitter(Appending(block))
        self.monoid, self.dim, self.backwards = MONOIDS[scan.monoid], scan.dim, scan.backwards
        self.type = type_at(local)

    @property
    def length(self) -> int:
        """The length of a block."""
        return self.type.shape[self.dim]

    def steps(self) -> tuple[Step, ...]:
        """The steps that gather the totals."""
        return totals(self.layout, self.dim, itemsize(self.type.dtype)).steps

    def total(self) -> SSAValue:
        """Emits the fold of a whole block: the last element of its scan."""
        return self.emit.part(self.local, self.dim, 0 if self.backwards else self.length - 1)

    def finish(self, gathered: SSAValue) -> SSAValue:
        """Emits the block of the whole scan, from the totals of all blocks."""
        emit, dtype = self.emit, self.type.dtype
        shape = type_at(gathered).shape
        count = shape[self.dim]
        scan = {"axis": self.dim, "reverse": self.backwards}
        scanned = emit.make(self.monoid.scan, (gathered,), dtype, shape, **scan)
        rank = self.rank()
        beside = emit.apply("add", rank, 1 if self.backwards else -1)
        beside = emit.apply("clamp", 0, beside, count - 1)
        starts = [beside if dim == self.dim else emit.number(0, IDS) for dim in range(len(shape))]
        before = emit.make("dynamic_slice", (scanned, *starts), dtype, self.one())
        before = emit.spread(before, self.type.shape, tuple(range(len(shape))))
        alone = emit.spread(emit.equals(rank, count - 1 if self.backwards else 0), self.type.shape)
        return self.bounded(emit.apply("select_n", alone, self.step(before), self.local), rank)

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

    def step(self, before: SSAValue) -> SSAValue:
        """Emits the monoid's product of the carry and the block."""
        if self.monoid.fold == "logsumexp":
            return self.log_add_exp(before, self.local)
        return self.emit.apply(self.monoid.name, before, self.local)

    def log_add_exp(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Emits `max(x, y) + log1p(exp(-|x - y|))`; for two equal infinities their sum."""
        apply = self.emit.apply
        largest, gap = apply("max", x, y), apply("sub", x, y)
        rest = apply("log1p", apply("exp", apply("neg", apply("abs", gap))))
        return apply("select_n", apply("ne", gap, gap), apply("add", largest, rest), apply("add", x, y))

    def one(self) -> Shape:
        """The shape of one element of the dim."""
        return tuple(1 if dim == self.dim else extent for dim, extent in enumerate(self.type.shape))
