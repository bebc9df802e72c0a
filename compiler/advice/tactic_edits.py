"""Changes of a plan's tactics that may end a conflict or a stop. Only those that were tried are offered.

replicate('x', 'data') before 1: tile('y', 0, 'data')   -->   the plan with both; refused, or still in conflict: no way out
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from ...dialects.ground.errors import Error
from ..plan.claims import Some
from ..plan.history import redone
from ..plan.state import State

PlanStep = Callable[[State], State]


class Change(NamedTuple):
    """A step to apply after all tactics or, with a `number`, before that tactic or instead of it."""

    step: PlanStep
    number: int | None = None
    keeps: bool = False
    why: str = ""

    def __call__(self, plan: Some) -> Some:
        if self.number is None:
            return cast(Some, self.step(plan))
        return redone(plan, self.number, [self.step], keeps=self.keeps)


def attempted(plan: Some, *steps: Callable[[Some], Some]) -> Some | None:
    """The plan after these steps; None if one of them is refused."""
    try:
        for step in steps:
            plan = step(plan)
    except Error:
        return None
    return plan


def helpful_edits(plan: Some, changes: Iterable[Change], is_open: Callable[[State], bool]) -> Iterator[tuple[Change, Some]]:
    """Yields the changes that are not refused and that end what they are meant to end, each with the plan that it makes."""
    for change in changes:
        made = attempted(plan, change)
        if made is not None and not is_open(made):
            yield change, made
