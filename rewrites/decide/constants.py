"""Computes on all devices what depends on no argument, where that costs less than to move it or to sum it.

Where a part of it is wanted, each device slices its own.

    %w {x*8} = exp (iota 64); %s{+x} = sum %w; mul %y {x*8}, %w; div ..., %s   -->   %w, %s whole: no all_reduce, local slices
"""

from __future__ import annotations

from ..program.program import ValueId
from .choices import Choices
from .place_by_cut import take_off
from .placements import Placements


def compute_constants_whole(choices: Choices) -> None:
    """Takes ops of constants off the axes on which their results are sums, or on which they are read otherwise."""
    placements, program = choices.placements, choices.program
    for node in map(program.nodes.__getitem__, program.constants()):
        axes = placements.axes(node)
        if axes and any(value in placements.sources or _is_moved(placements, value) for value in node.results):
            every = [*program.upstream(node.results, lambda each: each.number in program.constants() and each.is_free)]
            # To count, and to move what was counted, is no work that tactics divide.
            works = any(each.operands and not each.passes_on for each in every)
            take_off(choices, every, axes, works)


def _is_moved(placements: Placements, value: ValueId) -> bool:
    """Whether the value is read in another layout than the one in which it is made."""
    return any(placements.wanted(*use) != placements.homes[value] for use in placements.uses(value))
