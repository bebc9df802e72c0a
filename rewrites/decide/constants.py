"""Computes on all devices what depends on no argument, where that costs less than to move it or to sum it.

%w {x*8} = exp (iota 64); %s{+x} = sum %w; mul %y {x*8}, %w; div ..., %s   -->   %w, %s whole: no all_reduce, local slices
"""

from __future__ import annotations

from ..program.program import Node
from .choices import Alternative, Choices
from .place_by_cut import take


def compute_constants_whole(choices: Choices) -> None:
    """Takes ops of constants off the axes on which their results are sums, or on which they are read otherwise."""
    placements, program = choices.placements, choices.program
    constant = {node.number for node in _constants(choices)}
    for number in sorted(constant):
        node = program.nodes[number]
        if not any(value in placements.sources or _is_moved(choices, node) for value in node.results):
            continue
        made = [each for each in program.upstream(node.results, lambda each: each.number in constant) if placements.axes(each)]
        axes = placements.axes(node)
        take(choices, [{each.number: Alternative.of(placements.without(each, axes)) for each in made}], departs=True)


def _constants(choices: Choices) -> list[Node]:
    """The ops that are made of constants alone, and that may be placed otherwise."""
    made, found = set(choices.program.arguments), list[Node]()
    known = [True] * len(choices.program.types)
    for value in made:
        known[value] = False
    for node in choices.program.nodes:
        if all(map(known.__getitem__, node.operands)) and choices.is_free(node):
            found.append(node)
        else:
            for value in node.results:
                known[value] = False
    return found


def _is_moved(choices: Choices, node: Node) -> bool:
    """Whether a result is read in another layout than the one in which it is made."""
    placements = choices.placements
    uses = ((value, use) for value in node.results for use in placements.uses(value))
    return bool(placements.axes(node)) and any(placements.wanted(*use) != placements.home(value) for value, use in uses)
