"""Arguments that are stored in parts but read whole: which are gathered again for each use, and which once.

A parameter that a later tactic stores in parts, later than the one that placed its readers, is gathered for each use. Any other
argument is redistributed once. If ops that only move its elements are read whole, it is gathered before them.

    %a {x*8, 64}: %t = transpose %a; fft %a, fft %t   -->   one all_gather of %a, and a local transpose, not two all_gathers
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from ...dialects.ranges.algebra import Place
from ..program.program import Node
from .choices import Choices, is_stored, reads_of
from .place_by_cut import take_off


def gather_at_source(choices: Choices) -> None:
    """Takes axes off ops that only move an argument's elements, if they are read whole and this costs less."""
    placements, program = choices.placements, choices.program
    for value in program.arguments:
        axes = set(placements.homes[value].axes)
        if not axes or len(program.uses[value]) < 2:
            continue
        moved, reads = reads_of(placements, value)
        if not moved or all(axes <= set(placements.wanted(*use).axes) for use, _ in reads) or is_stored(placements, value):
            continue
        gather_earlier(choices, moved, axes)


def gather_earlier(choices: Choices, movers: Sequence[Node], axes: Set[Place]) -> None:
    """Takes axes off ops that only move a value, if this costs less and no tactic placed a result of theirs."""
    pinned = choices.placements.pinned
    if not any(value in pinned for node in movers for value in node.results):
        take_off(choices, movers, axes)
