"""What is known of each law, in groups: a law is proved when it is asked for, and may have several rows in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from .lemmas import lemmas
from .of_ranges import ranges
from .of_rules import laws as rule_laws
from .of_steps import step_laws
from .of_tilings import blocks, tilings
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """What is shown of a law, what is known of it, and whether that is as stated. It may stand for several cases."""

    cells: Sequence[str]
    verdict: Verdict
    is_as_stated: bool
    cases: int = 1

    def __str__(self) -> str:
        return f"{', '.join(filter(None, self.cells))}: {self.verdict}"


@dataclass(frozen=True, slots=True)
class Law:
    """A law by its name, which no other of its group has: `rows` proves it."""

    name: str
    rows: Callable[[], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Group:
    """Laws of one kind."""

    title: str
    columns: Sequence[str]
    laws: Sequence[Law]


def proved_lemmas() -> dict[str, bool]:
    """Whether each step of each lemma is proved."""
    return {**lemmas(), **blocks.lemmas()}


def _of_rules() -> Iterator[Law]:
    for file, rule in rule_laws.every_law():

        def rows(file: str = file, rule: rule_laws.Rule = rule) -> Sequence[Row]:
            found, conditions = rule_laws.verdict(file, rule), rule_laws.condition_verdicts(rule)
            said = (f"{each.condition}: {each.kind}{'' if each.is_right else ', which is wrong'}" for each in conditions)
            wanted = "not proved" if rule.name in rule_laws.NOT_PROVED else "proved"
            is_right = found.state == wanted and all(each.is_right for each in conditions)
            return [Row([file, rule.name, ", ".join(said)], found, is_right)]

        yield Law(rule.name, rows)


def _of_ranges() -> Iterator[Law]:
    for law in ranges.every_range_law():

        def rows(law: ranges.RangeLaw = law) -> Sequence[Row]:
            found = ranges.range_verdict(law.name)
            wanted = "not proved" if law.name in ranges.NOT_PROVED else "proved"
            return [Row([law.name, law.picture], found, found.state == wanted)]

        yield Law(law.name, rows)


def _of_steps() -> Iterator[Law]:
    for law in step_laws.step_laws():

        def rows(law: step_laws.StepLaw = law) -> Sequence[Row]:
            found = step_laws.step_verdict(law.name)
            return [Row([law.kind, str(law)], found, found.state == "proved")]

        yield Law(law.name, rows)
    for kind, why in step_laws.NOT_PROVED.items():
        row = Row([kind, ""], Verdict("not proved", why), True)
        yield Law(kind, lambda row=row: [row])


def _of_tilings() -> Iterator[Law]:
    for alike in tilings.classes():
        more = f" and {len(alike) - 1} like it" if len(alike) > 1 else ""

        def rows(alike: tilings.Alike = alike, more: str = more) -> Sequence[Row]:
            return [
                Row([each.definition.name + more, each.index, each.tiling], each.shown, each.is_as_stated, each.cases)
                for each in tilings.rows(alike[0])
            ]

        yield Law(", ".join(each.name for each in alike), rows)


@cache
def groups() -> tuple[Group, ...]:
    """All groups, in the order in which they are printed."""
    return (
        Group("Laws of the rules", ["file", "law", "conditions"], [*_of_rules()]),
        Group("Laws of ranges", ["law", "text"], [*_of_ranges()]),
        Group("Steps of redistribution", ["step", "law"], [*_of_steps()]),
        Group("Tilings of definitions", ["definition", "index", "tiling"], [*_of_tilings()]),
    )
