"""Each law of the `.rules` files with what is known of it, and each of its conditions with its kind.

`NOT_PROVED` lists the laws that no solver has proved, each with the reason. They stay tested on random arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...rules.rule import Condition, Rule
from ...rules.rule_files import all_rules, rules
from ..record import recorded
from ..verdict import Verdict, timed
from .programs import prove_program
from .prove import prove, without
from .statement import conditions, stated

PROGRAMS = "programs"

NOT_PROVED = {
    "selected": "needs a meaning of lists, and a renumbering: the better elements of all are in the lists of their blocks",
    "dealt": "as `selected`, of blocks that are dealt in turn",
}
"""The laws that are not proved, and what a proof needs."""

MEANING = "meaning"


@dataclass(frozen=True, slots=True)
class ConditionVerdict:
    """A condition of a law: its stated kind, and what is known of the law without it."""

    condition: Condition
    kind: str
    alone: Verdict

    @property
    def is_right(self) -> bool:
        """Whether the law is false without a condition of its meaning, and true without any other."""
        return self.alone.state == ("refuted" if self.kind == MEANING else "proved")


def every_law() -> Iterator[tuple[str, Rule]]:
    """The laws of all files."""
    files = {**all_rules(), PROGRAMS: rules(PROGRAMS)}
    yield from ((file, each.rule) for file, every in files.items() for each in every)


@recorded
def verdict(file: str, rule: Rule) -> Verdict:
    """What is known of a law of this file."""
    found = timed(lambda: prove_program(rule) if file == PROGRAMS else prove(rule))
    is_listed = found.state == "not proved" and rule.name in NOT_PROVED
    return replace(found, how=NOT_PROVED[rule.name]) if is_listed else found


@recorded
def condition_verdicts(rule: Rule) -> Sequence[ConditionVerdict]:
    """The conditions of a law, each tried without it."""
    said = ((each, stated(each)) for each in conditions(rule))
    return [ConditionVerdict(each, known.kind if known else "not stated", prove(without(rule, each))) for each, known in said]
