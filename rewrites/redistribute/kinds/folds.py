"""Folds over devices: all_reduce, and reduce_scatter, which leaves each device its part of the result; over trips also exscan.

[256]{+data} --> [256]         [256]{+data} --> [data*64]         the totals of blocks --> the fold of those before each
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.layouts import Pending
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Exscan(Step):
    """Each trip of a loop has the fold of the parts of those before it, or of those behind it."""

    monoid: str
    backwards: bool
    kind: ClassVar[str] = "exscan"

    @property
    def order(self) -> int:
        return -1 if self.backwards else 1

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return [spmd.ExscanOp.make(x, self.axes, monoid=self.monoid, backwards=int(self.backwards))]

    def __str__(self) -> str:
        return f"{self.kind} {self.monoid} {self.over}{' from behind' if self.backwards else ''}"


Fold = AllReduce | ReduceScatter
"""The steps that fold."""


def still_pending(step: Step, pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """What is still pending after a step."""
    return tuple(each for each in pending if each.axis not in step.axes) if isinstance(step, Fold) else pending
