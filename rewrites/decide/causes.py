"""The tactics that cause a redistribution: those that made the placements which it leaves, reaches or resolves.

A sum may have several terms, each made by an op that another tactic has placed. A layout is left because a tactic placed the
value so, and reached because a tactic placed the use, or the value, otherwise. All of them are causes.

    %y = add %a{+model}, %b{+model};  all_reduce %y   -->   the tactics that placed the ops which make %a and %b
    %g{+data}, wanted as {data*8};  reduce_scatter %g   -->   the tactics that placed the batch and the optimizer's state
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...dialects.ranges.algebra import Place
from ..program.program import Node
from ..redistribute.steps import Step
from .decide import SELECTED, Decisions, Move
from .deferred_reductions import makers
from .table import Claim


def is_own(move: Move) -> bool:
    """Whether an op itself moves what it has selected or sorted in each block."""
    return any(position == SELECTED for _, position in move.uses)


def summed_ops(decisions: Decisions, move: Move) -> list[Node]:
    """The ops whose folds are pending in the value that is moved, perhaps through linear ops, in program order."""
    found = makers(decisions.placements, decisions.carried, move.value) if move.pending else []
    return sorted(found, key=lambda node: node.number)


def causes_of(decisions: Decisions, move: Move, *steps: Step) -> list[int]:
    """The numbers of the tactics that cause these steps of a redistribution, in order; empty if the program alone needs them.

    If no tactic has placed anything on the axes of a step, the causes of its whole redistribution are taken.
    """
    every = decisions.placements.table.axes
    return sorted({each for step in steps for each in _tactics(decisions, move, step.axes) or _tactics(decisions, move, every)})


def _tactics(decisions: Decisions, move: Move, axes: Iterable[Place]) -> set[int]:
    """The tactics that cause a redistribution along some axes, and those that cause others with which it shares collectives."""
    moves = move.together or (move,)
    return {claim.tactic for axis in axes for each in moves for claim in _claims(decisions, each, axis)}


def _claims(decisions: Decisions, move: Move, axis: Place) -> Iterator[Claim]:
    """Yields the claims along an axis that make a value change its layout: those that it leaves, and those that it reaches."""
    placements = decisions.placements
    program, table = placements.program, placements.table.axes.get(axis)
    uses = [(program.nodes[number], position) for number, position in move.uses if number < program.end]
    ran, claims = list[Node](), list[Claim | None]()
    if is_own(move):
        ran += [node for node, _ in uses]
    else:
        own = None if table is None else table.values[move.value]
        claims.append(own)
        if any(each.axis == axis for each in move.pending):
            ran += summed_ops(decisions, move)
        elif axis in move.source.axes and (own is None or not move.uses):
            ran += [maker] if (maker := program.maker(move.value)) is not None else []
        if axis in move.target.axes:
            claimed = ((node, placements.claim(node.number, axis), position) for node, position in uses)
            ran += [node for node, to, position in claimed if to is not None and to.at in node.signature.operand_at[position]]
            # A result has the layout of the table, wherever its op runs.
            claims.append(placements.table.claim(move.value, axis) if len(uses) < len(move.uses) else None)
    claims += [placements.claim(node.number, axis) for node in ran]
    yield from (claim for claim in claims if claim is not None)
