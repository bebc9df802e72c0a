"""Halo: each device gets the window of a dim that it is to hold, from the devices whose blocks meet it.

[data*64] --> [win<64,66,1,1>(data) of 512]: the last row of the block before, its own block, the first row after it

What moves follows from the intersections of two families of intervals: those that the devices hold, and those that they are
to hold. A device gets a piece from each device `by` places after it; `by` 0 is its own piece, every other one is a permute.
Rows outside of the range are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import ClassVar, NamedTuple

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.layouts import Layout
from ....dialects.mesh import Mesh
from ....dialects.params import Literal
from ....dialects.ranges.factor import Factor, is_padded
from ...emit import IDS, Emitter, type_at
from ..steps import Bytes, Step


class Hop(NamedTuple):
    """The pieces that devices get from those `by` places after them, for each (sender, receiver) of the pairs.

    Where blocks and windows have one stride, a piece is rows `[begin, end)`, counted from the start of the receiver's block;
    elsewhere pieces begin in different places, and `rows` is the length of the longest.
    """

    by: int
    begin: int
    end: int
    rows: int
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Halo(Step):
    """The step on one dim, whose local rows have `row` bytes. `have` is None if each device has the whole dim."""

    kind: ClassVar[str] = "permute"
    term: ClassVar[str] = "halo"
    dim: int
    extent: int
    row: int
    have: Factor | None
    want: Factor

    @staticmethod
    def between(before: Layout, after: Layout, dim: int, itemsize: int, mesh: Mesh) -> Halo:
        """The step between layouts that differ in one dim, which is placed on one axis after it, and on that or none before."""
        (want,), have = after.at(dim, mesh), before.at(dim, mesh)
        extent, shape = before.global_shape(mesh)[dim], before.local_shape(mesh)
        row = itemsize * prod(size for at, size in enumerate(shape) if at != dim)
        source = have[0] if have else None
        received = row * sum(hop.rows for hop in _hops(source, want, extent) if hop.by)
        return Halo(
            axes=(want.name,),
            bytes=received,
            before=before,
            after=after,
            dim=dim,
            extent=extent,
            row=row,
            have=source,
            want=want,
        )

    @property
    def parts(self) -> tuple[Bytes, ...]:
        return tuple(hop.rows * self.row for hop in _hops(self.have, self.want, self.extent) if hop.by)

    def ops(self, x: SSAValue, mesh: Mesh) -> Sequence[Operation]:
        made: list[Operation] = []
        rows = _Rows(self, mesh, made)
        if self.have is None:
            out = rows.of_whole(x)
        elif self.have.stride == self.want.stride:
            out = rows.joined(x, self.have)
        else:
            out = rows.written(x, self.have)
        if self.have is not None and self.want.has_halo and is_padded(self.extent, [self.have]):
            rows.inside(out)
        return made

    def __str__(self) -> str:
        return f"halo over ({self.want.name}) {self.dim}: {self.have or 'whole'} to {self.want}"


@lru_cache(maxsize=1 << 12)
def _hops(have: Factor | None, want: Factor, extent: int) -> tuple[Hop, ...]:
    """The pieces by distance. A device takes its own rows where it can, all others from the devices that own them."""
    if have is None:
        return ()
    # What a device owns of a tiling that begins elsewhere ends before its block does.
    short = max(0, -have.after)
    found: dict[int, list[tuple[int, int, int, int]]] = {}
    for i, j in product(range(want.size), range(have.size)):
        begin, end = want.start(i), min(want.start(i) + want.width, extent)
        own, its = ((have.start(device), have.start(device) + have.width) for device in (i, j))
        if have.stride == want.stride:
            begin = max(begin, 0)
        if i != j and have.stride == want.stride:
            first, last = j * have.stride - short, extent if j + 1 == have.size else (j + 1) * have.stride - short
            its = (first, min(last, own[0])) if j < i else (max(first, own[1]), last)
        begin, end = max(begin, its[0]), min(end, its[1])
        if max(begin, 0) < end and (i == j or begin < own[0] or end > own[1]):
            found.setdefault(j - i, []).append((begin - i * have.stride, end - i * have.stride, j, i))
    return tuple(_hop(by, pieces) for by, pieces in sorted(found.items()))


def _hop(by: int, pieces: list[tuple[int, int, int, int]]) -> Hop:
    begins, ends, senders, receivers = zip(*pieces, strict=True)
    rows = max(end - begin for begin, end, *_ in pieces)
    return Hop(by, min(begins), max(ends), rows, tuple(zip(senders, receivers, strict=True)))


class _Rows:
    """Makes the local rows of one step."""

    def __init__(self, step: Halo, mesh: Mesh, into: list[Operation]) -> None:
        self.step, self.mesh, self.into, self.emit = step, mesh, into, Emitter(into)
        self.dim, self.want = step.dim, step.want
        self.coordinate: SSAValue | None = None

    def of_whole(self, x: SSAValue) -> SSAValue:
        """This device's window of the whole dim."""
        want = self.want
        first, end = want.start(0), want.end
        before, after = max(0, -first), max(0, end - self.step.extent)
        config = tuple((before, after, 0) if at == self.dim else (0, 0, 0) for at in range(len(type_at(x).shape)))
        if before or after:
            x = self.make("pad", [x, self.zero(x)], self.step.extent + before + after, x, padding_config=config)
        return self.cut_at(x, self.place(want.stride, first + before), want.width)

    def joined(self, x: SSAValue, have: Factor) -> SSAValue:
        """The pieces one after another: blocks and windows have one stride, so all devices have the same ones."""
        at, end, parts = -self.want.before, self.want.stride + self.want.after, list[SSAValue]()
        for hop in _hops(have, self.want, self.step.extent):
            if hop.begin > at:
                parts.append(self.zeros(x, hop.begin - at))
            first = hop.begin - hop.by * have.stride + have.before
            parts.append(self.sent(self.cut(x, first, hop.end - hop.begin), hop))
            at = hop.end
        if end > at:
            parts.append(self.zeros(x, end - at))
        return parts[0] if len(parts) == 1 else self.make("concatenate", parts, self.want.width, x, dimension=self.dim)

    def written(self, x: SSAValue, have: Factor) -> SSAValue:
        """The pieces, each written where its rows are, over zeros.

        The nearest come last: a device that gets nothing from one far off gets zeros, which may overlap them.
        """
        want, hops = self.want, _hops(have, self.want, self.step.extent)
        room = max((hop.rows for hop in hops), default=0)
        out = self.zeros(x, room + want.width + room)
        for hop in sorted(hops, key=lambda hop: -abs(hop.by)):
            # A piece begins where the receiver's window begins, or else with the first or the last rows of the sender.
            drift, most = want.stride - have.stride, have.width - hop.rows
            ahead = want.start(0) - have.start(0)
            piece = self.sent(self.cut_at(x, self.within(self.place(drift, ahead - hop.by * want.stride), most), hop.rows), hop)
            begin = self.place(drift, ahead - hop.by * have.stride)
            at = self.sum(self.emit.make("sub", (self.within(begin, most), begin), IDS, ()), room)
            out = self.make("dynamic_update_slice", [out, piece, *self.starts(at, x)], room + want.width + room, x)
        return self.cut(out, room, want.width)

    def inside(self, x: SSAValue) -> SSAValue:
        """Zeros where rows are outside of the range: behind its end a padded dim may hold anything."""
        first = self.place(self.want.stride, self.want.start(0))
        return self.emit.inside(x, self.dim, first, self.step.extent, self.zero(x))

    def sent(self, piece: SSAValue, hop: Hop) -> SSAValue:
        if not hop.by:
            return piece
        op = spmd.PermuteOp.make(piece, self.step.axes, self.mesh, pairs=spmd.PairsAttr(hop.pairs))
        self.into.append(op)
        return op.results[0]

    # Small local ops along the dim.

    def make(self, kind: str, ins: Sequence[SSAValue], size: int, like: SSAValue, /, **params: Literal) -> SSAValue:
        return self.emit.make(kind, ins, type_at(like).dtype, self.sized(like, size), **params)

    def sized(self, x: SSAValue, size: int) -> tuple[int, ...]:
        shape = type_at(x).shape
        return (*shape[: self.dim], size, *shape[self.dim + 1 :])

    def cut(self, x: SSAValue, first: int, size: int) -> SSAValue:
        if first == 0 and size == type_at(x).shape[self.dim]:
            return x
        starts = tuple(first if at == self.dim else 0 for at in range(len(type_at(x).shape)))
        return self.make("slice", [x], size, x, start_indices=starts, strides=None)

    def cut_at(self, x: SSAValue, start: SSAValue, size: int) -> SSAValue:
        if size == type_at(x).shape[self.dim]:
            return x
        return self.make("dynamic_slice", [x, *self.starts(start, x)], size, x)

    def starts(self, start: SSAValue, x: SSAValue) -> list[SSAValue]:
        zero = self.emit.number(0, IDS)
        return [start if at == self.dim else zero for at in range(len(type_at(x).shape))]

    def zeros(self, x: SSAValue, size: int) -> SSAValue:
        return self.emit.spread(self.zero(x), self.sized(x, size))

    def zero(self, x: SSAValue) -> SSAValue:
        return self.emit.unit("add", type_at(x).dtype)

    def place(self, stride: int, first: int) -> SSAValue:
        """This device's coordinate times a stride, and a number."""
        if not stride:
            return self.emit.number(first, IDS)
        if self.coordinate is None:
            op = spmd.CoordinateOp(self.step.axes)
            self.into.append(op)
            self.coordinate = op.results[0]
        return self.sum(self.emit.make("mul", (self.coordinate, self.emit.number(stride, IDS)), IDS, ()), first)

    def sum(self, one: SSAValue, other: int) -> SSAValue:
        return self.emit.make("add", (one, self.emit.number(other, IDS)), IDS, ()) if other else one

    def within(self, number: SSAValue, most: int) -> SSAValue:
        return self.emit.make("clamp", (self.emit.number(0, IDS), number, self.emit.number(most, IDS)), IDS, ())
