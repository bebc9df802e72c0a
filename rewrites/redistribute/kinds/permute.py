"""Permute: each device sends its whole part to one other device. [a*64] --> [b*64], or [a*b*8] --> [b*a*8]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, cast

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.layouts import Layout
from ....dialects.mesh import Mesh
from ....dialects.ranges.factor import Factor
from ..steps import Bytes, Spots, Step, in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(Step):
    """Two axes exchange their coordinates."""

    kind: ClassVar[str] = "permute"

    @property
    def is_idle(self) -> bool:
        return self.before is self.after

    @classmethod
    def of(cls, *args: object) -> Permute:
        a, b = cast(tuple[str, str], args)
        return cls(axes=(a, b))

    def place(self, at: Spots, mesh: Mesh) -> None:
        a, b = self.axes
        for axis, there in ((a, at.pop(b, None)), (b, at.pop(a, None))):
            if there is not None:
                at[axis] = there[0], Factor.of(axis, there[1].stride, mesh)

    @classmethod
    def received(cls, larger: int, group: int) -> Bytes:
        return larger

    def after_step(self, first: Step, mesh: Mesh) -> Step | None:
        if not isinstance(first, Permute):
            return None
        return Permute(axes=in_order(first.axes + self.axes, mesh), after=self.after)

    def ops(self, x: SSAValue, mesh: Mesh) -> Sequence[Operation]:
        return [spmd.PermuteOp.make(x, self.axes, mesh, pairs=spmd.PairsAttr(self.pairs(mesh)))]

    def pairs(self, mesh: Mesh) -> tuple[tuple[int, int], ...]:
        """Which device sends to which, numbered along the axes with the last one fastest.

        Each device sends to one and receives from one; where several hold the same piece, one that already has what it
        wants keeps it.
        """
        devices = [dict(zip(self.axes, at, strict=True)) for at in product(*(range(mesh[axis]) for axis in self.axes))]
        have = [_piece(self.before, at, mesh) for at in devices]
        want = [_piece(self.after, at, mesh) for at in devices]
        free: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for device, piece in enumerate(have):
            if piece != want[device]:
                free.setdefault(piece, []).append(device)
        sources = [device if have[device] == piece else free[piece].pop(0) for device, piece in enumerate(want)]
        return tuple((source, device) for device, source in enumerate(sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder(Permute):
    """Two axes that are neighbours on a dim change places there: `a` becomes the minor one."""

    dim: int
    stride: int
    term: ClassVar[str] = "reorder"

    @classmethod
    def of(cls, *args: object) -> Reorder:
        a, b, dim, stride = cast(tuple[str, str, int, int], args)
        return cls(axes=(a, b), dim=dim, stride=stride)

    def place(self, at: Spots, mesh: Mesh) -> None:
        a, b = self.axes
        at[a] = self.dim, Factor.of(a, self.stride, mesh)
        at[b] = self.dim, Factor.of(b, self.stride * mesh[a], mesh)


def _piece(layout: Layout, at: Mapping[str, int], mesh: Mesh) -> tuple[tuple[int, int], ...]:
    """The first element of a device's part in each dimension, which identifies the part among those that are exchanged."""
    begins: dict[int, int] = {}
    for dim, factor in layout.factors(mesh):
        if factor.name in at:
            begins[dim] = begins.get(dim, 0) + at[factor.name] * factor.stride
    return tuple(sorted(begins.items()))
