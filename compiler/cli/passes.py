"""The passes of `partita-opt`: lowering one step at a time, as text.

`fuse,to-spmd` turns the text of `plan.ir(fused=False)` into that of `plan.spmd()`, and `fuse,to-flow` into that of
`plan.lower("collective")`. The code of a pass is imported when it runs.
"""

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
    """Merge neighbouring builders, and cancel slicers with adjacent builders."""

    name = "fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ...rewrites.lower.fuse import fuse

        _rewrite(self, op, fuse)


@dataclass(frozen=True)
class ToSpmdPass(ModulePass):
    """Turn placed builders and slicers into one device-local function with explicit collectives."""

    name = "to-spmd"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ...rewrites.lower.to_spmd import to_spmd

        _rewrite(self, op, to_spmd)


@dataclass(frozen=True)
class ToFlowPass(ModulePass):
    """Turn placed builders and slicers into a graph of kernels: `to-flow{granularity="whole"}`, or `collective`."""

    name = "to-flow"
    granularity: str = "collective"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ...rewrites.lower.to_flow import to_flow

        _rewrite(self, op, lambda module: to_flow(module, self.granularity))


def _rewrite(self: ModulePass, module: ModuleOp, rewrite: Callable[[ModuleOp], ModuleOp]) -> None:
    """Replace the module in place by its rewritten form."""
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
