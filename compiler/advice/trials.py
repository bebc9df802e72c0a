"""Ways out of a conflict, and of a stop: changes of a plan's tactics, of which only those are offered that were tried.

replicate('x', 'data') before 1: tile('y', 0, 'data')   -->   the plan with both; refused, or still in conflict: no way out
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from ...dialects.ground.errors import Error
from ..plan.claims import Some
from ..plan.history import redone
from ..plan.state import State

Step = Callable[[State], State]


class Change(NamedTuple):
    """A step after all tactics; or one at a tactic of the trace, by its number: instead of it, or before it."""

    step: Step
    number: int | None = None
    keeps: bool = False
    why: str = ""

    def __call__(self, plan: Some) -> Some:
        if self.number is None:
            return cast(Some, self.step(plan))
        return redone(plan, self.number, [self.step], keeps=self.keeps)


def tried(plan: Some, changes: Iterable[Change], is_open: Callable[[State], bool]) -> Iterator[tuple[Change, Some]]:
    """The changes that are not refused, and after which what they are for is not open, each with the plan that it makes."""
    for change in changes:
        try:
            made = change(plan)
        except Error:
            continue
        if not is_open(made):
            yield change, made
