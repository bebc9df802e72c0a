"""Exchanges: each device gets the units that it lacks from devices that hold them, by a few collectives.

    who holds what, before and after   -->   who sends what to whom   -->   collectives   -->   local ops around them

In a permute no device sends two pieces, or receives two. The units are rows of a dim, in intervals (`halo`), or blocks of
several dims, listed one by one (`pieces`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.params import Literal
from ....dialects.ranges.algebra import MeshAxis
from ...emit import Emitter, Sink, type_at
from ..permute_rounds import Pair
from ..steps import Bytes, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Step):
    """An exchange. A device receives `units[i]` units in collective i, each of `unit` bytes."""

    unit: int
    units: tuple[int, ...] = ()

    def receiving(self, units: Sequence[int]) -> Self:
        """Returns the step with this number of units received in each collective, and with its bytes."""
        return replace(self, units=tuple(units), bytes=self.unit * sum(units))

    @property
    def parts(self) -> tuple[Bytes, ...]:
        return tuple(units * self.unit for units in self.units)


class Along:
    """Builds the ops of one device along one dim of its local arrays."""

    def __init__(self, axes: tuple[MeshAxis, ...], dim: int, into: Sink) -> None:
        self.axes, self.dim, self.into, self.emit = axes, dim, into, Emitter(into)

    def add(self, op: Operation) -> SSAValue:
        self.into.append(op)
        return op.results[0]

    def sized(self, x: SSAValue, size: int) -> tuple[int, ...]:
        """The shape of an array, with this length along the dim."""
        shape = type_at(x).shape
        return (*shape[: self.dim], size, *shape[self.dim + 1 :])

    def make(self, kind: str, ins: Sequence[SSAValue], size: int, /, **params: Literal) -> SSAValue:
        return self.emit.make(kind, ins, type_at(ins[0]).dtype, self.sized(ins[0], size), **params)

    def length(self, x: SSAValue) -> int:
        return type_at(x).shape[self.dim]

    def concatenated(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Concatenates the parts along the dim."""
        return self.emit.concatenate(parts, self.dim)

    def permuted(self, x: SSAValue, pairs: Sequence[Pair]) -> SSAValue:
        return self.add(spmd.PermuteOp.make(x, self.axes, pairs=spmd.PairsAttr(tuple(pairs))))

    def picked(self, x: SSAValue, rows: Sequence[Sequence[int]], dim: int) -> SSAValue:
        """Takes the rows that the table lists for each device, along a dim."""
        return self.add(spmd.PickOp.make(x, self.axes, dim=dim, rows=spmd.RowsAttr.of(rows)))
