"""The lowering of a plan, one step per line: the decisions, the placed program, the device-local module."""

from xdsl.dialects.builtin import ModuleOp

from ...rewrites.lower.materialise import materialise
from ...rewrites.lower.to_spmd import to_spmd
from ..define.block_sizes import try_block_sizes
from ..gc_pause import without_collector
from .state import State


def ir(plan: State, fused: bool = True) -> ModuleOp:
    """The placed builders and slicers: claims --> decisions --> one nest for each kernel."""
    with without_collector():
        decisions = plan.decisions
        try_block_sizes(decisions.placements, plan.source.traced.foreign)
        return materialise(decisions, fused)


def spmd(plan: State) -> ModuleOp:
    """The device-local module: claims --> decisions --> placed nests --> kernels with explicit collectives."""
    with without_collector():
        placed = ir(plan)
        return to_spmd(placed)
