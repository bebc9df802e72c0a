"""Steps without communication: a device takes its part of an array, pads a dim so that its axes divide it, or cuts padding off;
or it begins to do something in each trip of a loop.

[32] over data=8: slice   -->   [data*4]            [30]: pad   -->   [32]            [32]: cut   -->   [30]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ...emit import Emitter
from ..steps import Bytes, Factors, Step
from .tiled import Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Tiled):
    """Each device keeps its own part of an array that it holds."""

    kind: ClassVar[str] = "slice"

    @property
    def parts(self) -> tuple[Bytes, ...]:
        return ()

    @classmethod
    def received(cls, larger: int, group: int) -> Bytes:
        return 0

    def changes(self) -> tuple[Factors, Factors]:
        return [], self.on(self.dim, self.stride)

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return [spmd.SliceOp.make(x, self.axes, dim=self.dim, block=self.block)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EachTrip(Step):
    """Begins what is done in each trip of a loop, though all trips have the same value."""

    kind: ClassVar[str] = "each_trip"
    terms: ClassVar[tuple[str, ...]] = ("axes",)

    @property
    def parts(self) -> tuple[Bytes, ...]:
        return ()

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        trip = spmd.CoordinateOp(self.axes)
        return [trip, spmd.BarrierOp([x, trip.out])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized(Step):
    """Changes the length of the local array's dims."""

    @property
    def parts(self) -> tuple[Bytes, ...]:
        return ()

    def __str__(self) -> str:
        return f"{self.kind} {self.before} to {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pad(Resized):
    """Pads each dim of the local array with zeros to its length in `after`."""

    kind: ClassVar[str] = "pad"

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        ops: list[Operation] = []
        Emitter(ops).pad(x, self.after.local_shape)
        return ops


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Resized):
    """Cuts the dims of the local array to their lengths in `after`, from `first` or from the start on: the inverse of a pad."""

    kind: ClassVar[str] = "cut"
    first: tuple[int, ...] = ()

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        ops: list[Operation] = []
        Emitter(ops).cut(x, self.after.local_shape, self.first)
        return ops
