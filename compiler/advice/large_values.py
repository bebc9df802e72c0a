"""Finds the large values that fill the memory of a device, and the loops that compute them in parts.

logits: f32[4096, 50257], and their exponentials, are half of the peak   -->   tile('logits', 0, 't:8')
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from ...dialects.ground.errors import Error
from ...rewrites.program.program import NO_NODE, ValueId
from ..cost.memory import at_peak, held_at_peak, peak_bytes
from ..plan.claims import Some, tile
from ..plan.named_laws import made_by, value_name
from ..plan.state import State

TRIPS = 8
"""The number of parts in which a large value is tried."""
SHARE = 3
"""A loop over parts is worth it if it frees more than one part in this many of the peak."""
MOST_OPS = 5_000
"""The text of a plan of a program with more ops than this does not try loops."""
MOST_KINDS = 4
"""The number of kinds of large values that are tried."""


class InParts(NamedTuple):
    """A tile on a loop, by which a large value is computed in parts."""

    name: str
    dim: int
    loop: str
    backward: bool = True
    """Whether what makes the value is computed in parts too."""

    @property
    def text(self) -> str:
        """The tile as a line of a trace."""
        return f"tile({self.name!r}, {self.dim}, {self.loop!r}{'' if self.backward else ', backward=False'})"

    def __call__(self, plan: Some) -> Some:
        return tile(plan, self.name, self.dim, self.loop, backward=self.backward)


def large(plan: State) -> list[ValueId]:
    """The values that are stored at the peak of memory and computed by ops, the largest first."""
    return [value for value in at_peak(plan) if plan.source.program.producer[value] >= 0 and not made_by(plan, value).is_border]


def in_parts(plan: State) -> Iterator[InParts]:
    """Yields loops that compute the largest values in parts. Values with the same ranges are in one loop."""
    classes, loop = plan.source.classes, _new_loop(plan)
    kinds = {tuple(classes.dims(value)): value for value in reversed(large(plan))}
    for ranges, value in list(kinds.items())[: -MOST_KINDS - 1 : -1]:
        shape = plan.source.program.shape(value)
        alike = [each for each in plan.source.program.values if tuple(classes.dims(each)) == ranges]
        for dim in (dim for dim, extent in enumerate(shape) if extent % TRIPS == 0 and extent > TRIPS):
            yield from _entered(plan, alike[0], dim, loop)
            yield InParts(_name(plan, alike), dim, loop)


def _new_loop(plan: State) -> str:
    """A loop with a name that the mesh does not have."""
    names = (f"t{number or ''}" for number in count())
    return f"{next(name for name in names if not plan.mesh.parts(name, ()))}:{TRIPS}"


def _name(plan: State, alike: Sequence[ValueId]) -> str:
    """A name for one of these values: preferably one that the user gave it."""
    names = [value_name(plan, value) for value in alike]
    return next((name for name in names if "#" not in name and not name.startswith(("grad(", "tangent("))), names[0])


def _entered(plan: State, value: ValueId, dim: int, loop: str) -> Iterator[InParts]:
    """Yields the tile of a value from which the large one is computed, if its gradient has a name: the loop ends there too."""
    node = made_by(plan, value)
    (index,) = {at for at, place in node.signature.result_at[node.results.index(value)].items() if place.dim == dim} or {None}
    for operand, at in zip(node.operands, node.signature.operand_at, strict=True):
        name, is_made = value_name(plan, operand), plan.source.program.producer[operand] != NO_NODE
        if is_made and index in at and plan.source.addresses.gradients_of(name):
            yield InParts(name, at[index].dim, loop, backward=False)


def best_in_parts(plan: State) -> tuple[str, int] | None:
    """The loop that computes the largest value in parts, as a line of a trace, and the bytes that it frees; None if no loop
    frees a large part of the peak. Loops that could are tried."""
    if len(plan.source.program.nodes) > MOST_OPS or not (values := large(plan)):
        return None
    peak = peak_bytes(plan)
    # The values of one kind are stored together at the most.
    ranges, classes = tuple(plan.source.classes.dims(values[0])), plan.source.classes
    stored = sum(size for size, value in held_at_peak(plan) if tuple(classes.dims(value)) == ranges)
    if stored * SHARE <= peak:
        return None
    freed = {each.text: size for each in in_parts(plan) if (size := _freed(plan, each)) * SHARE > peak}
    return max(freed.items(), key=lambda each: each[1], default=None)


def _freed(plan: State, loop: InParts) -> int:
    try:
        return peak_bytes(plan) - peak_bytes(loop(plan))
    except Error:
        return 0
