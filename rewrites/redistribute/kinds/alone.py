"""Steps without communication: a device takes its part of an array, pads a dim so that its axes divide it, or cuts padding off.

[32] over data=8: slice   -->   [data*4]            [30]: pad   -->   [32]            [32]: cut   -->   [30]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ...emit import Emitter, Sink, type_at
from ..steps import Bytes, Step
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

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return [spmd.SliceOp.make(x, self.axes, dim=self.dim, block=self.block)]


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
        padded(x, self.after.local_shape, ops)
        return ops


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Resized):
    """Cuts the dims of the local array to their lengths in `after`, from `first` or from the start on: the inverse of a pad."""

    kind: ClassVar[str] = "cut"
    first: tuple[int, ...] = ()

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        ops: list[Operation] = []
        cut(x, self.after.local_shape, ops, self.first)
        return ops


def padded(x: SSAValue, shape: tuple[int, ...], into: Sink) -> SSAValue:
    """Pads an array to this shape, with zeros behind the elements of each dim."""
    emit, type = Emitter(into), type_at(x)
    config = tuple((0, new - old, 0) for old, new in zip(type.shape, shape, strict=True))
    return emit.make("pad", (x, emit.zero(type.dtype)), type.dtype, shape, padding_config=config)


def cut(x: SSAValue, shape: tuple[int, ...], into: Sink, first: Sequence[int] = ()) -> SSAValue:
    """Cuts an array to this shape: the elements from `first` on, or by default from the start."""
    starts = tuple(first) or (0,) * len(shape)
    return Emitter(into).make("slice", (x,), type_at(x).dtype, shape, start_indices=starts, strides=None)
