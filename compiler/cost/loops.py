"""The loops of a plan, as they run: what each folds, stores and computes.

They are read off the device-local program, since lowering decides in which loop an op runs.

    two losses, of which the second needs the sum of the first   -->   t:8, 0.1 GFLOP; t:8, 2.4 GFLOP
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Block, SSAValue

from ...dialects.lax import RegionOp, ScanOp
from ...dialects.op_text import array_types
from ...rewrites.decide.decide import Move
from ...rewrites.lower.loop_schedule import Crossing, flops_of
from ...rewrites.program.program import NO_VALUE, ValueId
from ..gc_pause import without_collector
from ..plan.state import State
from .as_lowered import as_lowered

MAIN = 20
"""A loop that computes less than this part of what all loops over one range do is no main loop."""


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One loop of the device-local program."""

    loop: str
    """Its name and trips: `micro:8`."""
    times: int
    """How often it runs, one after another: more than once inside of a program's own loop."""
    folds: int
    """The bytes of its carries."""
    stores: int
    """The bytes that its trips store for what comes after it."""
    kept: int
    """The bytes of these that later loops read, trip by trip."""
    flops: int
    """The flops of one device in all trips of one call."""


def loops(plan: State) -> list[LoopRun]:
    """The loops of a plan, in the order in which they begin."""
    return plan.once(_loops)


def _loops(plan: State) -> list[LoopRun]:
    if not plan.mesh.loops:
        return []
    with without_collector():
        return list(_in_block(as_lowered(plan).main, 1, 1))


def _in_block(block: Block, times: int, runs: int) -> Iterator[LoopRun]:
    """The loops of a block that is run so often in the program's own loops, and in all loops."""
    for op in block.ops:
        if not isinstance(op, ScanOp):
            for region in op.regions:
                yield from _in_block(region.block, times, runs)
            continue
        (inner,), outs = op.regions, array_types(op.results)
        carries = len(range(len(op.operands))[op.entry.carries])
        loop = op.params.get("loop")
        if isinstance(loop, str):
            folds, stores = sum(each.nbytes for each in outs[:carries]), sum(each.nbytes for each in outs[carries:])
            kept = sum(type.nbytes for type, end in zip(outs[carries:], op.results[carries:], strict=True) if _is_row(end))
            yield LoopRun(loop, times, folds, stores, kept, runs * op.length * _flops(inner.block))
        yield from _in_block(inner.block, times if isinstance(loop, str) else times * op.length, runs * op.length)


def _is_row(stack: SSAValue) -> bool:
    """Whether a loop reads a row of a stack in each trip."""
    return any(isinstance(use.operation, RegionOp) for use in stack.uses)


def flops_as_lowered(plan: State) -> int:
    """The known flops of one device in one call, with what several loops over one range compute again."""
    return _flops(as_lowered(plan).main)


def crossings(plan: State) -> list[tuple[ValueId, Crossing]]:
    """The values that several loops over one range need, and how they get them; NO_VALUE for parts of an op."""
    if not are_several(plan):
        return []
    found = as_lowered(plan)
    return [(found.values.get(cast(SSAValue, each.value), NO_VALUE), each) for each in found.crossings]


def _flops(block: Block) -> int:
    return sum(flops_of(op) or 0 for op in block.ops)


def main_loops(plan: State, loop: str) -> int:
    """How many loops over one range, one after another, compute a good part of what there is to compute."""
    found = [each for each in loops(plan) if each.loop == loop]
    total = sum(each.flops for each in found)
    return sum(each.times for each in found if each.flops * MAIN >= total)


def are_several(plan: State) -> bool:
    """Whether a loop ends before another one over the same range begins: without that, a plan need not be lowered to tell."""
    return plan.once(_are_several)


def _are_several(plan: State) -> bool:
    return any(chain(plan, str(loop)) for loop in plan.mesh.loops)


def chain(plan: State, loop: str) -> list[Move]:
    """The folds and stacks that end a loop: later trips or a loop of the program read them, or scans of blocks are joined."""
    program, (place,) = plan.source.program, plan.mesh.named(loop)
    placed, orders = plan.decisions.placements.nodes, plan.decisions.orders()

    def ends(move: Move) -> bool:
        over = [step for step in move.path.steps if step.communicates and step.axes == (place,)]
        return any(move.region or not step.order or step.order != orders[place, 0] for step in over)

    def is_read(move: Move) -> bool:
        if move.region or any(each.scans for each in move.pending):
            return True
        readers = (node for value in program.downstream([move.value], lambda _: True) for node in program.readers(value))
        return any(factor.axis is place for node in readers for _, factor in placed[node.number].placement)

    return [move for move in plan.decisions.moves if ends(move) and is_read(move)]
