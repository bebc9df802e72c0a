"""What is known of each law, in groups: a row a law, which is proved when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .lemmas import lemmas
from .of_ranges import ranges
from .of_rules import laws as rule_laws
from .of_steps import step_laws
from .of_tilings import blocks, tilings
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """A law: what is shown of it, and what is known of it and whether that is as stated. It may stand for several cases."""

    cells: Sequence[str]
    verdict: Callable[[], tuple[Verdict, bool]]
    count: int = 1
    seconds: float = 0
    """What the proof has taken, where it is found with others of its kind."""


@dataclass(frozen=True, slots=True)
class Group:
    """Laws of one kind. `rows` has those with one of the names, or all if there are no names."""

    title: str
    columns: Sequence[str]
    rows: Callable[[Sequence[str]], Iterator[Row]]
    is_long: bool = False
    """Whether the proofs take as long as those of several other groups."""


def proved_lemmas() -> dict[str, bool]:
    """Whether each step of each lemma is proved."""
    return {**lemmas(), **blocks.lemmas()}


def _of_rules(names: Sequence[str]) -> Iterator[Row]:
    for file, rule in rule_laws.every_law():
        if names and rule.name not in names:
            continue
        conditions = rule_laws.condition_verdicts(rule)
        said = (f"{each.condition}: {each.kind}{'' if each.is_right else ', which is wrong'}" for each in conditions)
        wanted = "not proved" if rule.name in rule_laws.NOT_PROVED else "proved"

        def verdict(file: str = file, rule: rule_laws.Rule = rule, wanted: str = wanted) -> tuple[Verdict, bool]:
            found = rule_laws.verdict(file, rule)
            return found, found.state == wanted and all(each.is_right for each in rule_laws.condition_verdicts(rule))

        yield Row([file, rule.name, ", ".join(said)], verdict)


def _of_ranges(names: Sequence[str]) -> Iterator[Row]:
    for law in ranges.every_range_law():
        if names and law.name not in names:
            continue
        wanted = "not proved" if law.name in ranges.NOT_PROVED else "proved"

        def verdict(name: str = law.name, wanted: str = wanted) -> tuple[Verdict, bool]:
            found = ranges.range_verdict(name)
            return found, found.state == wanted

        yield Row([law.name, law.picture], verdict)


def _of_steps(names: Sequence[str]) -> Iterator[Row]:
    for law in step_laws.step_laws():
        if names and law.kind not in names:
            continue

        def verdict(law: step_laws.StepLaw = law) -> tuple[Verdict, bool]:
            found = step_laws.step_verdict(law)
            return found, found.state == "proved"

        yield Row([law.kind, str(law)], verdict)
    for kind, why in step_laws.NOT_PROVED.items() if not names else ():
        yield Row([kind, ""], lambda why=why: (Verdict("not proved", why), True))


def _of_tilings(names: Sequence[str]) -> Iterator[Row]:
    for alike in tilings.classes():
        if names and not {each.name for each in alike} & {*names}:
            continue
        more = f" and {len(alike) - 1} like it" if len(alike) > 1 else ""
        for row in tilings.rows(alike[0]):
            found = Verdict(row.verdict.state, row.why), row.is_as_stated
            yield Row([row.definition.name + more, row.index, row.tiling], lambda found=found: found, row.cases, row.seconds)


GROUPS = [
    Group("Laws of the rules", ["file", "law", "conditions"], _of_rules),
    Group("Laws of ranges", ["law", "text"], _of_ranges, is_long=True),
    Group("Steps of redistribution", ["step", "law"], _of_steps),
    Group("Tilings of definitions", ["definition", "index", "tiling"], _of_tilings),
]
"""All groups, in the order in which they are printed."""
