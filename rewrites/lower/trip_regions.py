"""Ops over loops: which places they name, and how the number of a trip enters the regions of an op in it.

scan of layers { coordinate (t:4) ... }   -->   scan %number { the number of the trip ... }
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import spmd
from ...dialects.array import Barrier, Coordinate
from ...dialects.lax import OPS, CondOp, RegionOp
from ...dialects.ranges.algebra import Loop, Place
from ..emit import Emitter, again
from .trip_ops import in_trip

BARRIERS = (Barrier, OPS["optimization_barrier"])
"""Ops each of whose results is one operand: of these some may be in trips, and others the same in all."""


def places_of(op: Operation) -> tuple[Place, ...]:
    """The places that an op names."""
    return cast("spmd.Collective | Coordinate", op).axes if _names_places(type(op)) else ()


def is_within(op: Operation, loop: Loop) -> bool:
    """Whether an op, or one in its regions, is over a loop."""
    return any(loop in places_of(each) for each in op.walk())


@cache
def _names_places(kind: type[Operation]) -> bool:
    return issubclass(kind, spmd.Collective | Coordinate)


@cache
def is_barrier(kind: type[Operation]) -> bool:
    return issubclass(kind, BARRIERS)


def copied(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """The op on other operands."""
    if op.regions:
        made = op.clone()
        made.operands = list(operands)
        return made
    made = again(op, operands, [each.type for each in operands] if is_barrier(type(op)) else op.result_types)
    made.attributes.update(op.attributes)
    return made


def with_number(op: RegionOp, operands: Sequence[SSAValue], loop: Loop, number: SSAValue) -> RegionOp:
    """The op on other operands. If a region has rows of a trip, the number of the trip enters it."""
    made = cast(RegionOp, copied(op, operands))
    if is_within(made, loop):
        enter(made, loop, number)
    return made


def enter(op: RegionOp, loop: Loop, number: SSAValue) -> None:
    """Writes what the regions of an op in a trip do over the loop, for which they get the number of the trip."""
    entry, params = op.entry, op.params
    for name in ("num_consts", "cond_nconsts", "body_nconsts"):
        if isinstance(counted := params.get(name), int):
            params = params.changed(**{name: counted + 1})
    is_choice = isinstance(op, CondOp)
    ends = [len(op.operands)] if is_choice else sorted((each.stop for each in entry.consts), reverse=True)
    operands = list(op.operands)
    for end in ends:
        operands.insert(end, number)
    op.operands = operands
    op.properties["params"] = params
    for region, consts in zip(op.regions, entry.consts, strict=True):
        block = region.block
        at = len(block.args) if is_choice else len(range(len(operands))[consts])
        _enter_block(block, loop, block.insert_arg(number.type, at))


def _enter_block(block: Block, loop: Loop, number: SSAValue) -> None:
    for op in list(block.ops):
        if loop in places_of(op):
            before = list[Operation]()
            made = in_trip(Emitter(before), op, op.operands, loop, number)
            block.insert_ops_before(before, op)
            op.results[0].replace_all_uses_with(made)
            op.detach()
            op.erase()
        elif isinstance(op, RegionOp) and is_within(op, loop):
            enter(op, loop, number)
