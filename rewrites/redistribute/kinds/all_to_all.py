"""All_to_all: every device sends each other one a part, so that the axes move to another dim, or within one.

[data*64, 8] --> [256, data*2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.ranges.algebra import MeshAxis
from ..steps import Part
from .tiled import Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class AllToAll(Tiled):
    """The axes leave a dim for another one, `to_dim`."""

    to_dim: int
    to_stride: int
    kind: ClassVar[str] = "all_to_all"
    terms = ("axes", "dim", "stride", "to_dim", "to_stride")

    def renamed(self, axes: tuple[MeshAxis, ...], parts: Sequence[Part]) -> Self:
        here, to = parts[self.dim], parts[self.to_dim]
        made = replace(self, axes=axes, dim=here.dim, stride=self.stride * here.minor)
        return replace(made, to_dim=to.dim, to_stride=self.to_stride * to.minor)

    @property
    def block(self) -> int:
        """How many elements stay together where the parts are joined, in the result."""
        return self.after.inner(self.dim, self.stride)

    @property
    def split_block(self) -> int:
        """The same where the parts are split. The split comes first, so this counts elements of the operand."""
        return self.before.inner(self.to_dim, self.to_stride)

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        split = {"split": self.to_dim, "split_block": self.split_block}
        return [spmd.AllToAllOp.make(x, self.axes, **split, concat=self.dim, concat_block=self.block)]

    def __str__(self) -> str:
        return f"{Tiled.__str__(self)} to {self.to_dim}@{self.to_stride}"
