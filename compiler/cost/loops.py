"""The loops of a plan, as they run: what each folds, stores and computes.

They are read off the device-local program, since lowering decides in which loop an op runs.

    two losses, of which the second needs the sum of the first   -->   t:8, 0.1 GFLOP; t:8, 2.4 GFLOP
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from ...dialects.definitions.flops import flops
from ...dialects.lax import LaxOp, ScanOp
from ...dialects.op_text import array_types
from ...dialects.types import ArrayType
from ...rewrites.decide.decide import Move
from ...rewrites.redistribute.kinds.folds import AllReduce
from ..plan.lowering import spmd
from ..plan.state import State

MAIN = 20
"""A loop that computes less than this part of what all loops over one range do is no main loop."""


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One loop of the device-local program."""

    loop: str
    """Its name and trips: `micro:8`."""
    times: int
    """How often it runs in one call: more than once inside of a program's own loop."""
    folds: int
    """The bytes of its carries."""
    stores: int
    """The bytes that its trips store for what comes after it."""
    flops: int
    """The flops of one device in all trips of one call."""


def loops(plan: State) -> list[LoopRun]:
    """The loops of a plan, in the order in which they begin."""
    return plan.once(_loops)


def _loops(plan: State) -> list[LoopRun]:
    if not plan.mesh.loops:
        return []
    return list(_in_block(cast(FuncOp, spmd(plan).body.block.first_op).body.block, 1))


def _in_block(block: Block, times: int) -> Iterator[LoopRun]:
    for op in block.ops:
        if not isinstance(op, ScanOp):
            for region in op.regions:
                yield from _in_block(region.block, times)
            continue
        (inner,), outs = op.regions, array_types(op.results)
        carries = len(range(len(op.operands))[op.entry.carries])
        if isinstance(loop := op.params.get("loop"), str):
            folds, stores = sum(each.nbytes for each in outs[:carries]), sum(each.nbytes for each in outs[carries:])
            yield LoopRun(loop, times, folds, stores, times * op.length * _flops(inner.block))
        yield from _in_block(inner.block, times * op.length)


def _flops(block: Block) -> int:
    """The flops of one run of a block."""
    found = 0
    for op in block.ops:
        if isinstance(op, ScanOp):
            found += op.length * _flops(op.regions[0].block)
        elif op.regions:
            found += max(_flops(region.block) for region in op.regions)
        elif isinstance(op, LaxOp):
            ins, outs = (tuple(cast(ArrayType, each.type).shape for each in side) for side in (op.operands, op.results))
            found += flops(op.primitive(), op.params, ins, outs) or 0
    return found


def main_loops(plan: State, loop: str) -> int:
    """How many loops over one range, one after another, compute a good part of what there is to compute."""
    found = [each for each in loops(plan) if each.loop == loop]
    total = sum(each.flops for each in found)
    return sum(each.times for each in found if each.flops * MAIN >= total)


def chain(plan: State, loop: str) -> list[Move]:
    """The folds over a loop that later trips read: each of them ends a loop."""
    program, (place,) = plan.source.program, plan.mesh.named(loop)
    placed = plan.decisions.placements.nodes

    def is_fold(move: Move) -> bool:
        return any(isinstance(step, AllReduce) and step.axes == (place,) for step in move.path.steps)

    def is_read(move: Move) -> bool:
        readers = (node for value in program.downstream([move.value], lambda _: True) for node in program.readers(value))
        return any(factor.axis is place for node in readers for _, factor in placed[node.number].placement)

    return [move for move in plan.decisions.moves if is_fold(move) and is_read(move)]
