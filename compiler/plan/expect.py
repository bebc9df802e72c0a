"""`plan.expect`: the collectives that a test expects of a plan, or an error that shows the others."""

from collections.abc import Mapping

from ...dialects.errors import Error, did_you_mean
from ..inputs.checks import count_of
from .collectives import collectives, counts
from .counts import Counts
from .state import State

MOST = 20
"""The most collectives that one error shows."""


def expect(plan: State, wanted: Mapping[str, int]) -> None:
    """Raises Error if the plan's counts differ from the wanted ones, with the offending collectives.

    Branches count too: of each `cond` the branch with the most.
    """
    have = counts(plan)
    added = have.in_branches
    for kind in wanted:
        if kind not in have:
            helps = did_you_mean(kind, have, f"the kinds are {', '.join(have)}")
            raise Error(f"unknown collective `{kind}`", helps=helps)
        count_of(kind, wanted[kind])
    wrong = {kind: count for kind, count in wanted.items() if have[kind] + added.get(kind, 0) != count}
    if wrong:
        said = ", ".join(f"{kind}: {_had(have, kind)}, expected {count}" for kind, count in wrong.items())
        notes = [str(each) for each in collectives(plan) if each.kind in wrong]
        more = [f"and {len(notes) - MOST} more"] if len(notes) > MOST else []
        title = f"the plan's counts differ from those expected: {said}"
        raise Error(title, notes=[*notes[:MOST], *more], helps=["`plan.explain(value)` says which tactic decided"])


def _had(have: Counts, kind: str) -> str:
    """The count of a kind: `3, 1 of them in a branch of cond#0`."""
    added = have.in_branches.get(kind, 0)
    inside = f", {added} of them in a branch of {' and '.join(have.choices(kind))}" if added else ""
    return f"{have[kind] + added}{inside}"
