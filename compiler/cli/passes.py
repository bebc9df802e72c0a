"""The passes of `partita-opt`: lowering a step at a time, as text.

The text of `plan.ir(fused=False)` through `fuse,to-spmd` is that of `plan.spmd()`, and through `fuse,to-flow` that of
`plan.lower("collective")`. What a pass does is loaded when it is run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.errors import Error


@dataclass(frozen=True)
class FusePass(ModulePass):
    """Neighbouring builders become one, and slicers cancel with the builders that they meet."""

    name = "fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ...rewrites.lower.fuse import fuse

        _rewrite(self, op, fuse)


@dataclass(frozen=True)
class ToSpmdPass(ModulePass):
    """Placed builders and slicers become one device-local function with explicit collectives."""

    name = "to-spmd"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ...rewrites.lower.to_spmd import to_spmd

        _rewrite(self, op, to_spmd)


@dataclass(frozen=True)
class ToFlowPass(ModulePass):
    """Placed builders and slicers become a graph of kernels: `to-flow{granularity="whole"}`, or `collective`."""

    name = "to-flow"
    granularity: str = "collective"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ...rewrites.lower.to_flow import to_flow

        _rewrite(self, op, lambda module: to_flow(module, self.granularity))


def _rewrite(self: ModulePass, module: ModuleOp, rewrite: Callable[[ModuleOp], ModuleOp]) -> None:
    """Make the module the one that a rewrite makes of it."""
    if not isinstance(module.body.block.first_op, FuncOp):
        raise PassFailedException(f"`{self.name}` takes a module that begins with its `func.func`")
    try:
        made = rewrite(module)
    except Error as error:
        raise PassFailedException(str(error)) from error
    region = made.detach_region(made.body)
    module.detach_region(module.body)
    module.add_region(region)


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "fuse": lambda: FusePass,
    "to-spmd": lambda: ToSpmdPass,
    "to-flow": lambda: ToFlowPass,
}
