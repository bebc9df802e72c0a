"""The tactics that cause a collective: those that made the placements which it leaves, reaches or resolves.

A sum may have several terms, each made by an op that another tactic has placed. A layout is left because a tactic placed the
value so, and reached because a tactic placed the use, or the value, otherwise. All of them are causes.

    %y = add %a{+model}, %b{+model};  all_reduce %y   -->   the tactics that placed the ops which make %a and %b
    %g{+data}, wanted as {data*8};  reduce_scatter %g   -->   the tactics that placed the batch and the optimizer's state
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...dialects.ranges.algebra import MeshAxis
from ...rewrites.decide.decide import Move
from ...rewrites.decide.table import Claim
from ...rewrites.program.program import Node
from ...rewrites.redistribute.steps import Step
from ..plan.state import State
from .op_strategies import is_own, summed_ops


class Cause(NamedTuple):
    """A tactic that causes a collective: its place in `plan.trace`, counted from 1, and its text."""

    number: int
    tactic: str

    def __str__(self) -> str:
        return f"{self.number}: {self.tactic}"


def causes(plan: State, move: Move, step: Step) -> tuple[Cause, ...]:
    """The tactics that cause a step, in the order of the trace; empty if the program alone needs it.

    If no tactic has placed anything on the axes of the step, the causes of its whole redistribution are taken.
    """
    found = _tactics(plan, move, step.axes) or _tactics(plan, move, plan.decisions.placements.table.axes)
    return tuple(Cause(number + 1, plan.actions[number].said) for number in sorted(found))


def causes_text(found: Iterable[Cause]) -> str:
    """The causes in a sentence: `1: tile('x', 0, 'data') and 2: tile('w', 1, 'data')`."""
    return " and ".join(map(str, found)) or "the program"


def _tactics(plan: State, move: Move, axes: Iterable[MeshAxis]) -> set[int]:
    """The tactics that cause a redistribution along some axes, and those that cause others with which it shares collectives."""
    moves = move.together or (move,)
    return {claim.tactic for axis in axes for each in moves for claim in _claims(plan, each, axis)}


def _claims(plan: State, move: Move, axis: MeshAxis) -> Iterator[Claim]:
    """Yields the claims along an axis that make a value change its layout: those that it leaves, and those that it reaches."""
    nodes, placements = plan.source.program.nodes, plan.decisions.placements
    table = placements.table.axes.get(axis)
    uses = [(nodes[number], position) for number, position in move.uses if number < len(nodes)]
    ran, claims = list[Node](), list[Claim | None]()
    if is_own(move):
        ran += [node for node, _ in uses]
    else:
        own = None if table is None else table.values[move.value]
        claims.append(own)
        if any(each.axis == axis for each in move.pending):
            ran += summed_ops(plan, move)
        elif axis in move.source.axes and (own is None or not move.uses):
            ran += [nodes[number]] if (number := plan.source.program.producer[move.value]) >= 0 else []
        if axis in move.target.axes:
            ran += [node for node, position in uses if _is_along(plan, node, position, axis)]
            # A result has the layout of the table, wherever its op runs.
            claims.append(placements.table.claim(move.value, axis) if len(uses) < len(move.uses) else None)
    claims += [placements.claim(node.number, axis) for node in ran]
    yield from (claim for claim in claims if claim is not None)


def _is_along(plan: State, node: Node, position: int, axis: MeshAxis) -> bool:
    """Whether the op reads an operand in blocks along the axis."""
    claim = plan.decisions.placements.claim(node.number, axis)
    return claim is not None and claim.at in node.signature.operand_at[position]
