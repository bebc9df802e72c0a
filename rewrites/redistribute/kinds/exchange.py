"""Exchanges: each device gets the rows that it lacks from devices that have them, by a few collectives.

    who has what, and who wants what   -->   who sends what to whom   -->   collectives   -->   local ops around them

In a permute no device sends two pieces, or receives two. There are two plans, for two ways to say who has what:

    halo     intervals of rows of one dim. Each row has one owner, so all devices send and receive rows that lie alike, and
             one program of slices is right on thousands of devices. Pieces move whole.
    pieces   units of several dims, listed one by one. Devices that hold the same units share the load, and pieces are cut,
             so that all rounds are as short as they can be. Devices look their units up in tables.

A plan that cuts pieces is no longer alike on all devices: of a window of three, one round would bring rows from the device
before to some devices and from the one after to others, and each slice would become a table of all devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.params import Literal
from ....dialects.ranges.algebra import Place
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


class Along(Emitter):
    """Emits ops of one device along one dim of its local arrays."""

    def __init__(self, axes: tuple[Place, ...], dim: int, into: Sink) -> None:
        super().__init__(into)
        self.axes, self.dim = axes, dim

    def add(self, op: Operation) -> SSAValue:
        self.into.append(op)
        return op.results[0]

    def sized(self, x: SSAValue, size: int) -> tuple[int, ...]:
        """The shape of an array, with this length along the dim."""
        shape = type_at(x).shape
        return (*shape[: self.dim], size, *shape[self.dim + 1 :])

    def of_length(self, size: int, kind: str, ins: Sequence[SSAValue], /, **params: Literal) -> SSAValue:
        """The result of an op, with this length along the dim."""
        return self.make(kind, ins, type_at(ins[0]).dtype, self.sized(ins[0], size), **params)

    def length(self, x: SSAValue) -> int:
        return type_at(x).shape[self.dim]

    def concatenated(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Concatenates the parts along the dim."""
        return self.concatenate(parts, self.dim)

    def permuted(self, x: SSAValue, pairs: Sequence[Pair]) -> SSAValue:
        return self.add(spmd.PermuteOp.make(x, self.axes, pairs=spmd.PairsAttr(tuple(pairs))))

    def picked(self, x: SSAValue, rows: Sequence[Sequence[int]], dim: int) -> SSAValue:
        """Takes the rows that the table lists for each device, along a dim."""
        return self.add(spmd.PickOp.make(x, self.axes, dim=dim, rows=spmd.RowsAttr.of(rows)))
