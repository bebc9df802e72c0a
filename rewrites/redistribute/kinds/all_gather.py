"""All_gather: every device receives the parts of all others. [data*64] over data --> [256]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ..steps import Factors
from .tiled import Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class AllGather(Tiled):
    """Removes axes from a dim: each device receives the other devices' blocks."""

    kind: ClassVar[str] = "all_gather"
    rank = 5

    def changes(self) -> tuple[Factors, Factors]:
        return self.on(self.dim, self.stride), []

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return [spmd.AllGatherOp.make(x, self.axes, dim=self.dim, block=self.block)]
