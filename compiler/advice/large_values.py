"""Finds the large values that fill the memory of a device, and the loops that compute them in parts.

logits: f32[4096, 50257], and their exponentials, are half of the peak   -->   tile('logits', 0, 't:8')
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from ...dialects.ranges.algebra import Place
from ...rewrites.program.program import NO_NODE, ValueId
from ..cost.memory import at_peak, held_at_peak, peak_bytes
from ..plan.claims import Some, led_by, tile
from ..plan.named_laws import made_by, unnumbered, value_name
from ..plan.state import State
from ..views.grouping import grouped
from .tactic_edits import attempted

TRIPS = 8
"""The number of parts in which a large value is tried."""
SHARE = 3
"""A loop over parts is worth it if it frees more than one part in this many of the peak."""
MOST_OPS = 5_000
"""Of programs with more ops than this, the text of a plan offers no loop: to try one takes too long."""
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


def in_parts(plan: State, most: int = MOST_KINDS, beside_axes: bool = True) -> Iterator[InParts]:
    """Yields loops that compute the largest values in parts. Values with the same ranges, or of layers alike, are one.

    A loop beside an axis repeats in each trip what is sent over the axis.
    """
    program, classes, loop = plan.source.program, plan.source.classes, _new_loop(plan)
    alike = grouped(
        (value for value in program.values if program.producer[value] >= 0), lambda value: tuple(classes.dims(value))
    )
    kinds = dict[str, tuple[str, ValueId]]()
    for value in large(plan):
        values = alike[tuple(classes.dims(value))]
        name = _name(plan, values)
        kinds.setdefault(unnumbered(name), (name, values[0]))
        if len(kinds) == most:
            break
    for name, value in kinds.values():
        for dim, extent in enumerate(program.shape(value)):
            if extent % TRIPS or extent <= TRIPS or (plan.table.on_dim(value, dim) and not beside_axes):
                continue
            yield from _entered(plan, value, dim, loop)
            yield InParts(name, dim, loop)


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
    digits = node.signature.result_dims[node.results.index(value)][dim]
    for operand, at in led_by(digits, node.operands, node.signature.operand_dims):
        name, is_made = value_name(plan, operand), plan.source.program.producer[operand] != NO_NODE
        if is_made and plan.source.addresses.gradients_of(name):
            yield InParts(name, at, loop, backward=False)


def best_in_parts(plan: State) -> tuple[str, int] | None:
    """A loop that computes the largest value in parts, as a line of a trace, and the bytes that it frees; None if none does.

    Of the loops, the first that has a large part of the peak on it is tried. `plan.rewrites()` tries all.
    """
    if len(plan.source.program.nodes) > MOST_OPS or not (values := large(plan)) or _is_in_parts(plan, values[0]):
        return None
    for each in in_parts(plan, 1, beside_axes=False):
        made = attempted(plan, each)
        if made is not None and _frees(plan, _held_on(plan, made, each.loop)):
            freed = peak_bytes(plan) - peak_bytes(made)
            return (each.text, freed) if _frees(plan, freed) else None
    return None


def _is_in_parts(plan: State, value: ValueId) -> bool:
    return any(_is_on(plan, value, loop) for loop in plan.mesh.loops)


def _held_on(plan: State, made: State, loop: str) -> int:
    """The bytes that are stored at the peak of a plan, of values that lie on a loop of the other one."""
    return sum(size for size, value in held_at_peak(plan) if _is_on(made, value, made.mesh.place(loop)))


def _frees(plan: State, size: int) -> bool:
    """Whether so many bytes are a large part of the peak."""
    return size * SHARE > peak_bytes(plan)


def _is_on(plan: State, value: ValueId, place: Place) -> bool:
    return place in plan.table.layout(value).axes
