"""All_to_all: every device sends a part to every other device, which moves axes to another dim, or within one.

[data*64, 8] --> [256, data*2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.ranges.algebra import Place
from ..steps import DimPart, Factors
from .tiled import Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class AllToAll(Tiled):
    """Moves axes from a dim to another one, `to_dim`."""

    to_dim: int
    to_stride: int
    kind: ClassVar[str] = "all_to_all"
    rank = 2
    terms = ("axes", "dim", "stride", "to_dim", "to_stride")

    def renamed(self, axes: tuple[Place, ...], parts: Sequence[DimPart]) -> Self:
        here, to = parts[self.dim], parts[self.to_dim]
        made = replace(self, axes=axes, dim=here.dim, stride=self.stride * here.minor)
        return replace(made, to_dim=to.dim, to_stride=self.to_stride * to.minor)

    @property
    def block(self) -> int:
        """The number of consecutive elements of the result that stay together where parts are joined."""
        return self.after.inner(self.dim, self.stride)

    @property
    def split_block(self) -> int:
        """The number of consecutive elements of the operand that stay together where it is split. The split comes first."""
        return self.before.inner(self.to_dim, self.to_stride)

    def changes(self) -> tuple[Factors, Factors]:
        return self.on(self.dim, self.stride), self.on(self.to_dim, self.to_stride)

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        split = {"split": self.to_dim, "split_block": self.split_block}
        return [spmd.AllToAllOp.make(x, self.axes, **split, concat=self.dim, concat_block=self.block)]

    def __str__(self) -> str:
        return f"{Tiled.__str__(self)} to {self.to_dim}@{self.to_stride}"
