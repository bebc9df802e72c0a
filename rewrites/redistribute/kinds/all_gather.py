"""All_gather: every device receives the parts of all others. [data*64] over data --> [256]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.mesh import Mesh
from ..steps import Spots, Step
from .tiled import Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class AllGather(Tiled):
    """The axes leave a dim."""

    kind: ClassVar[str] = "all_gather"

    def place(self, at: Spots, mesh: Mesh) -> None:
        del at[self.axes[0]]

    def after_step(self, first: Step, mesh: Mesh) -> Step | None:
        if not isinstance(first, AllGather) or not self.is_outside(first, mesh):
            return None
        return replace(self, axes=self.axes + first.axes, stride=first.stride)

    def ops(self, x: SSAValue, mesh: Mesh) -> Sequence[Operation]:
        return [spmd.AllGatherOp.make(x, self.axes, mesh, dim=self.dim, block=self.block(mesh))]
