"""All_to_all: every device sends each other one a part, so that the axes move to another dim, or within one.

[data*64, 8] --> [256, data*2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.mesh import Mesh
from ....dialects.ranges.factor import Factor
from ..steps import Spots, Step, devices
from .tiled import Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class AllToAll(Tiled):
    """The axes leave a dim for another one, `to_dim`."""

    to_dim: int
    to_stride: int
    kind: ClassVar[str] = "all_to_all"

    @classmethod
    def of(cls, *args: object) -> AllToAll:
        axis, dim, stride, to_dim, to_stride = cast(tuple[str, int, int, int, int], args)
        return cls(axes=(axis,), dim=dim, stride=stride, to_dim=to_dim, to_stride=to_stride)

    def place(self, at: Spots, mesh: Mesh) -> int:
        (axis,) = self.axes
        at[axis] = self.to_dim, Factor.of(axis, self.to_stride, mesh)
        return self.to_dim

    def block(self, mesh: Mesh) -> int:
        """How many elements stay together where the parts are joined, in the result."""
        return self.after.inner(self.dim, self.stride, mesh)

    def split_block(self, mesh: Mesh) -> int:
        """The same where the parts are split. The split comes first, so this counts elements of the operand."""
        return self.before.inner(self.to_dim, self.to_stride, mesh)

    def after_step(self, first: Step, mesh: Mesh) -> Step | None:
        if not isinstance(first, AllToAll):
            return None
        lands = first.to_dim == self.to_dim and first.to_stride == self.to_stride * devices(self.axes, mesh)
        if first.is_outside(self, mesh) and lands and self.has_parts(first, mesh):
            return replace(self, axes=first.axes + self.axes)
        return None

    def has_parts(self, first: AllToAll, mesh: Mesh) -> bool:
        """Whether each device has a part for every other one. Within a dim it has only the elements between both strides.

        [2*b*a] -> [b*2*a] -> [b*a*2] stays two steps: with two elements each, four devices cannot exchange all at once.
        """
        if first.dim != first.to_dim:
            return True
        low, high = sorted((first.stride, first.to_stride))
        axes = (*first.axes, *self.axes)
        between = [f for f in first.before.at(first.dim, mesh) if low < f.stride <= high and f.name not in axes]
        return high // low // devices((f.name for f in between), mesh) % devices(axes, mesh) == 0

    def ops(self, x: SSAValue, mesh: Mesh) -> Sequence[Operation]:
        split = {"split": self.to_dim, "split_block": self.split_block(mesh)}
        return [spmd.AllToAllOp.make(x, self.axes, mesh, **split, concat=self.dim, concat_block=self.block(mesh))]

    def __str__(self) -> str:
        return f"{Tiled.__str__(self)} to {self.to_dim}@{self.to_stride}"
