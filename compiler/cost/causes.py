"""The tactics that cause a collective, with their texts."""

from collections.abc import Iterable
from typing import NamedTuple

from ...rewrites.decide.causes import causes_of
from ...rewrites.decide.decide import Move
from ...rewrites.redistribute.steps import Step
from ..plan.state import State


class Cause(NamedTuple):
    """A tactic that causes a collective: its place in `plan.trace`, counted from 1, and its text."""

    number: int
    tactic: str

    def __str__(self) -> str:
        return f"{self.number}: {self.tactic}"


def causes(plan: State, move: Move, step: Step) -> tuple[Cause, ...]:
    """The tactics that cause a step, in the order of the trace; empty if the program alone needs it."""
    return tuple(cause_at(plan, number) for number in causes_of(plan.decisions, move, step))


def cause_at(plan: State, number: int) -> Cause:
    """A tactic, by its number among the plan's actions."""
    return Cause(number + 1, plan.actions[number].said)


def causes_text(found: Iterable[Cause]) -> str:
    """The causes in a sentence: `1: tile('x', 0, 'data') and 2: tile('w', 1, 'data')`."""
    return " and ".join(map(str, found)) or "the program"
