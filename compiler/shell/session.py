"""The state of a session: branches of plans, and the present step of each. Immutable, so `undo` returns to an earlier plan.

tile x.0 @data       plans: plain, tiled       at 1
undo                 plans: plain, tiled       at 0, and `redo` goes on
branch other         another branch with the same plans, at the same step
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...dialects.grammar import grammar
from ...dialects.ground.amounts import there_are
from ...dialects.ground.errors import Error, did_you_mean
from ..api.plan import Plan
from ..notation.parse import GRAMMAR, STARTS
from .name_tree import NameTree

MAIN = "main"
WIDEST = 160
"""The most columns that an answer takes."""
KEPT = 3
"""How many of a branch's last plans keep their cached results; an older plan computes them again when it is looked at."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The plans of a branch, one for each step, and the number of the present one."""

    plans: tuple[Plan, ...]
    at: int = 0

    @property
    def plan(self) -> Plan:
        return self.plans[self.at]

    def then(self, plan: Plan) -> Branch:
        """The branch with one more step; undone steps are forgotten."""
        before = self.plans[: self.at + 1]
        old = before[:-KEPT]
        # A copy has no cached results: the decisions of a large program take more room than all of its tables.
        light = tuple(replace(each) if "decisions" in vars(each) else each for each in old)
        return Branch((*light, *before[-KEPT:], plan), self.at + 1)

    def moved(self, steps: int) -> Branch:
        """The branch moved by this many steps, back if negative. Raises Error if it is not that long."""
        if not 0 <= self.at + steps < len(self.plans):
            what, there = ("undo", self.at) if steps < 0 else ("redo", len(self.plans) - 1 - self.at)
            title = (
                f"nothing to {what}"
                if not there
                else f"{there_are(there)} {'step' if there == 1 else 'steps'} to {what}, not {abs(steps)}"
            )
            raise Error(title, helps=["`history` lists the tactics"])
        return replace(self, at=self.at + steps)


@dataclass(frozen=True, slots=True)
class Session:
    """All branches of a session, and the present one. Made by `Session.start`; each command returns a new one."""

    branches: Mapping[str, Branch] = field(repr=False)
    known: NameTree = field(repr=False)
    here: str = MAIN
    width: int = field(default=100, compare=False)
    """The columns that tables may take."""

    @classmethod
    def start(cls, plan: Plan, width: int = 100) -> Session:
        """Starts a session on a plan. Computes what all plans of the program share, so that the first answer is fast too."""
        grammar(GRAMMAR, STARTS)
        plan.range_roots.get("")
        return cls({MAIN: Branch((plan,))}, NameTree.of(plan), width=width)

    @property
    def branch(self) -> Branch:
        return self.branches[self.here]

    @property
    def plan(self) -> Plan:
        return self.branch.plan

    @property
    def names(self) -> NameTree:
        """The names of the present program, which a law may have rewritten."""
        return self.known if self.known.source is self.plan.source else NameTree.of(self.plan)

    @property
    def origin(self) -> Plan:
        """The plan with which the session began."""
        return self.branch.plans[0]

    def then(self, plan: Plan) -> Session:
        """The session after a step of this branch."""
        return self.at(self.branch.then(plan))

    def at(self, branch: Branch) -> Session:
        return replace(self, branches={**self.branches, self.here: branch})

    def on(self, name: str) -> Session:
        """The session on another branch; a new one, starting at the present plan, if there is none of this name."""
        return replace(self, branches={**self.branches, name: self.branches.get(name, self.branch)}, here=name)

    def named(self, name: str) -> Plan:
        """The present plan of a branch. Raises Error if there is none of this name."""
        if name not in self.branches:
            helps = did_you_mean(name, self.branches, f"the branches are {', '.join(self.branches)}")
            raise Error(f"there is no branch `{name}`", helps=helps)
        return self.branches[name].plan
