"""The arguments and results of a program, in their layouts outside of it: those that are alike are looked at once.

params/w0: f32[data*2, 8], ..., params/w2499: f32[data*2, 8]   -->   2,500 ends of 64 bytes
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...rewrites.decide.placements import boundary
from ...rewrites.program.program import Program, ValueId
from ..plan.state import State
from ..views.grouping import grouped


class AlikeEnds(NamedTuple):
    """Ends of one layout and dtype: the bytes of each on a device, and their numbers; results come after all arguments."""

    layout: Layout
    bytes: int
    numbers: Sequence[int]


def ends(program: Program) -> list[ValueId]:
    """The arguments, then the results."""
    return [*program.arguments, *program.returned]


def alike_ends(plan: State) -> Sequence[AlikeEnds]:
    """Thousands of arguments and results have a few layouts."""
    placements, outer = plan.decisions.placements, ends(plan.source.program)
    homes, results, types = placements.homes, placements.results, plan.source.program.types
    kinds = [(results.get(value, homes[value]), types[value].dtype) for value in outer]
    found = list[AlikeEnds]()
    for numbers in grouped(range(len(outer)), kinds.__getitem__).values():
        first = outer[numbers[0]]
        layout = boundary(placements, first)
        found.append(AlikeEnds(layout, placements.local_bytes(first, layout), numbers))
    return found


def bytes_of_ends(plan: State) -> Sequence[int]:
    """The bytes of each argument, then of each result, on one device."""
    sizes: dict[int, int] = {}
    for each in plan.once(alike_ends):
        sizes.update(dict.fromkeys(each.numbers, each.bytes))
    return [*map(sizes.__getitem__, range(len(sizes)))]


def bytes_of_arguments(plan: State) -> Sequence[int]:
    return plan.once(bytes_of_ends)[: len(plan.source.program.arguments)]


def device_sets(plan: State) -> Sequence[Mesh | None]:
    """The device sets of a plan. Most plans have one, the whole mesh, which is None."""
    return [None] if plan.table.sets is None else plan.table.sets.every


def ends_on(plan: State, on: Mesh | None) -> Sequence[int]:
    """The bytes of each argument, then of each result, on a device of a set."""
    sizes, sets = plan.once(bytes_of_ends), plan.table.sets
    if sets is None:
        return sizes
    return [size if sets.of(value) is on else 0 for size, value in zip(sizes, ends(plan.source.program), strict=True)]


def argument_bytes(plan: State) -> int:
    """The bytes of arguments that one device holds, at most."""
    count = len(plan.source.program.arguments)
    return max(sum(ends_on(plan, on)[:count]) for on in device_sets(plan))
