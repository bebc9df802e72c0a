"""Folds over devices: all_reduce, and reduce_scatter, which leaves each device its part of the result.

[256]{+data} --> [256]                    [256]{+data} --> [data*64]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.ranges.algebra import Place, major_to_minor
from ..steps import Bytes, DimPart, Factors, Step, share
from .tiled import Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduce(Step):
    """Each device receives the fold of all parts. It counts as a reduce_scatter and an all_gather, so twice their bytes."""

    monoid: str
    kind: ClassVar[str] = "all_reduce"
    rank = 4
    terms = ("monoid", "axes")

    @classmethod
    def received(cls, larger: int, group: int) -> Bytes:
        return share(larger, group, times=2)

    def renamed(self, axes: tuple[Place, ...], parts: Sequence[DimPart]) -> Self:
        return replace(self, axes=major_to_minor(axes))

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return [spmd.AllReduceOp.make(x, self.axes, monoid=self.monoid)]

    def __str__(self) -> str:
        return f"{self.kind} {self.monoid} {self.over}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceScatter(Tiled):
    """Each device receives its own part of the fold."""

    monoid: str
    kind: ClassVar[str] = "reduce_scatter"
    rank = 1
    terms = ("monoid", "axes", "dim", "stride")

    def changes(self) -> tuple[Factors, Factors]:
        return [], self.on(self.dim, self.stride)

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return [spmd.ReduceScatterOp.make(x, self.axes, monoid=self.monoid, dim=self.dim, block=self.block)]

    def __str__(self) -> str:
        return f"{self.kind} {self.monoid} {self.over} {self.dim}@{self.stride}"


Fold = AllReduce | ReduceScatter
"""The steps that fold."""
