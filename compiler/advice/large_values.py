"""Finds whether a large value fills the memory of a device, and the rewriting that computes it in parts.

logits: f32[4096, 50257], and their exponentials, are half of the peak   -->   rewrite("chunk", at="logits", dim=0, trips=8)
"""

from collections.abc import Iterator, Sequence

from ...rewrites.laws.chunk import NotInParts, part_of
from ...rewrites.laws.chunk_part import LoopPart
from ...rewrites.program.program import ValueId
from ..cost.memory import at_peak, held_at_peak, peak_bytes
from ..plan.named_laws import made_by, value_name
from ..plan.state import State

TRIPS = 8
"""The number of parts in which a large value is tried."""
SHARE = 3
"""A loop over parts is worth it if it frees more than one part in this many of the peak."""
MOST_OPS = 20_000
"""Programs with more ops than this are not searched."""


def large(plan: State) -> list[ValueId]:
    """The values that are stored at the peak of memory and computed by ops, the largest first."""
    return [value for value in at_peak(plan) if plan.source.program.producer[value] >= 0 and not made_by(plan, value).is_border]


def dims_in_parts(shape: Sequence[int]) -> Iterator[int]:
    return (dim for dim, extent in enumerate(shape) if extent % TRIPS == 0 and extent > TRIPS)


def chunk_rewriting(plan: State) -> tuple[str, int] | None:
    """The rewriting that computes the largest value at the peak in parts, and the bytes that this frees; None if there is none.

    The rewriting is a line of a trace. It is offered only if the value, with what is computed beside it, is a large part of
    the peak. The dim is one without an axis, because a loop over parts of a placed dim would gather it.
    """
    values = large(plan) if len(plan.source.program.nodes) <= MOST_OPS else []
    if not values:
        return None
    value, peak = values[0], peak_bytes(plan)
    for dim in dims_in_parts(plan.source.program.shape(value)):
        part = None if plan.table.on_dim(value, dim) else _loop_part(plan, value, dim)
        if part is not None and (size := _freed(plan, part)) * SHARE > peak:
            return f"rewrite('chunk', at={_value_name(plan, part, value)!r}, dim={dim}, trips={TRIPS})", size
    return None


def _loop_part(plan: State, value: ValueId, dim: int) -> LoopPart | None:
    try:
        part = part_of(plan.source.program, plan.source.classes, value, dim)
    except NotInParts:
        return None
    return part if part.nodes else None


def _freed(plan: State, part: LoopPart) -> int:
    """The bytes stored at the peak of values that are no longer whole if computed in parts: those that only the loop reads, and
    that the program does not return."""
    program, numbers = plan.source.program, {node.number for node in part.nodes}
    uses = plan.decisions.placements.uses

    def is_freed(value: ValueId) -> bool:
        is_made = program.producer[value] in numbers and part.dims.get(value) is not None
        return is_made and all(user in numbers for user, _ in uses(value))

    return sum({value: size for size, value in held_at_peak(plan) if is_freed(value)}.values())


def _value_name(plan: State, part: LoopPart, value: ValueId) -> str:
    """A name for the value: preferably one that the user gave to a value like it in the same loop."""
    program = plan.source.program
    made = [each for node in part.nodes for each in node.results]
    names = [
        value_name(plan, each) for each in (value, *(each for each in made if program.types[each] == program.types[value]))
    ]
    return next((name for name in names if "#" not in name and not name.startswith(("grad(", "tangent("))), names[0])
