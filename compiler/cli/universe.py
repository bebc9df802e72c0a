"""The entry point by which `xdsl-opt` and `xdsl-gui` find Partita's dialects and passes.

Everything is loaded on first use, because xDSL's tools read the universe of every package when they start.
"""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.exceptions import PassFailedException

from ...dialects import dialects
from ...dialects.ground.errors import Error


class _Lowering(ModulePass):
    """Base of passes that replace the module by its rewritten form. Their code is imported when they run."""

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        raise NotImplementedError

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not isinstance(op.body.block.first_op, FuncOp):
            raise PassFailedException(f"`{self.name}` takes a module that begins with its `func.func`")
        try:
            made = self.rewritten(op)
        except Error as error:
            raise PassFailedException(str(error)) from error
        op.attributes = dict(made.attributes)
        region = made.detach_region(made.body)
        op.detach_region(op.body)
        op.add_region(region)


@dataclass(frozen=True)
class PropagatePass(_Lowering):
    """Carry the claims of tactics to all ops and values that follow."""

    name = "propagate"

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        from ...rewrites.plan_text.stages import propagated

        return propagated(module)


@dataclass(frozen=True)
class DecidePass(_Lowering):
    """Turn claims into decisions: where ops run, which sums they carry, and how values move."""

    name = "decide"

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        from ...rewrites.plan_text.stages import decided

        return decided(module)


@dataclass(frozen=True)
class MovePass(_Lowering):
    """Find the moves again for where ops run and which sums they carry, after these have been edited."""

    name = "move"

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        from ...rewrites.plan_text.stages import moved_again

        return moved_again(module)


@dataclass(frozen=True)
class MaterialisePass(_Lowering):
    """Turn decisions into placed builders and slicers."""

    name = "materialise"

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        from ...dialects.array import keep_mesh
        from ...rewrites.lower.constructors import Plain
        from ...rewrites.lower.materialise import materialise
        from ...rewrites.plan_text.stages import decisions_of

        made = materialise(decisions_of(module), Plain)
        keep_mesh(module, made)
        return made


@dataclass(frozen=True)
class FusePass(_Lowering):
    """Merge neighbouring builders, and cancel slicers with adjacent builders."""

    name = "fuse"

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        from ...rewrites.lower.fuse import fuse

        return fuse(module)


@dataclass(frozen=True)
class ToSpmdPass(_Lowering):
    """Turn placed builders and slicers into one device-local function with explicit collectives."""

    name = "to-spmd"

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        from ...rewrites.lower.to_spmd import to_spmd

        return to_spmd(module)


@dataclass(frozen=True)
class ToFlowPass(_Lowering):
    """Turn placed builders and slicers into a graph of kernels: `to-flow{granularity="whole"}`, or `collective`."""

    name = "to-flow"
    granularity: str = "collective"

    def rewritten(self, module: ModuleOp) -> ModuleOp:
        from ...rewrites.lower.to_flow import to_flow

        return to_flow(module, self.granularity)


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "propagate": lambda: PropagatePass,
    "decide": lambda: DecidePass,
    "move": lambda: MovePass,
    "materialise": lambda: MaterialisePass,
    "fuse": lambda: FusePass,
    "to-spmd": lambda: ToSpmdPass,
    "to-flow": lambda: ToFlowPass,
}
"""`fuse,to-spmd` turns the text of `plan.ir(fused=False)` into that of `plan.spmd()`, and `fuse,to-flow` into that of
`plan.lower("collective")`."""


def _dialect(name: str) -> Callable[[], Dialect]:
    return lambda: dialects()[name]


UNIVERSE = Universe(all_dialects={name: _dialect(name) for name in ("array", "flow", "lax", "plan", "spmd")}, all_passes=PASSES)
