"""Rules of masks consist of what definitions ask for and of what the local code runs: all else is an error when they load."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from partita.dialects.ground.errors import Error
from partita.rewrites.decide import requirements
from partita.rewrites.lower import device_local_op
from partita.rewrites.rules import rule_files
from partita.rewrites.rules.allowed_heads import Head, Heads
from partita.rewrites.rules.compile import RuleSet, load


def mask(rows: object, inside: object) -> None:
    """Stands for a function that runs a head."""


ASKED = Heads(Head("lookup", "take", ". array"), Head("array", "build", ". ."))
WRITTEN = Heads(
    Head("result", "sum", ". result", mask),
    Head("result", "mask", "rows result", mask),
    Head("result", "take", ". ."),
    Head("rows", "mine", ". . ."),
)
LAW = "lookup: take(k, build(m, x)) => sum(m, mask(mine(m, k, m), take(k, x)))"


def check(rules: RuleSet) -> None:
    ASKED.check(rules, [(each.rule, "lookup", each.rule.left) for each in rules], "rewrites")
    WRITTEN.check(rules, [(each.rule, "result", each.rule.right) for each in rules], "makes")


def test_rules_that_consist_of_the_heads_of_a_table_load() -> None:
    check(load(LAW))


CASES = {
    "a head that no definition asks for": (
        "lookup: tke(k, build(m, x)) => sum(m, x)",
        """
        error: rule `lookup`: no `lookup` is called `tke`
          --> <rules>:1:9
           |
         1 | lookup: tke(k, build(m, x)) => sum(m, x)
           |         ^^^ unknown
        help: `lookup` can be `take`
        """,
    ),
    "a head inside of the left side": (
        "lookup: take(k, biuld(m, x)) => sum(m, x)",
        """
        error: rule `lookup`: no `array` is called `biuld`
          --> <rules>:1:17
           |
         1 | lookup: take(k, biuld(m, x)) => sum(m, x)
           |                 ^^^^^ unknown
        help: `array` can be `build`
        """,
    ),
    "a head that nothing runs": (
        f"{LAW}\nother: take(k, build(m, x)) => sum(m,\n    msk(mine(m, k, m), x))",
        """
        error: rule `other`: no `result` is called `msk`
          --> <rules>:3:5
           |
         3 |     msk(mine(m, k, m), x))
           |     ^^^ unknown
        help: `result` can be `mask`
        """,
    ),
    "a head where another kind of term belongs": (
        "lookup: take(k, build(m, x)) => sum(m, mask(take(k, x), x))",
        """
        error: rule `lookup`: no `rows` is called `take`
          --> <rules>:1:45
           |
         1 | lookup: take(k, build(m, x)) => sum(m, mask(take(k, x), x))
           |                                             ^^^^ unknown
        help: `rows` can be `mine`
        """,
    ),
    "a term where a variable belongs": (
        "lookup: take(k, build(m, x)) => sum(mine(m, k, m), x)",
        """
        error: rule `lookup`: expected a variable, not `mine`
          --> <rules>:1:37
           |
         1 | lookup: take(k, build(m, x)) => sum(mine(m, k, m), x)
           |                                     ^^^^
        """,
    ),
    "a number of arguments that nothing runs": (
        "lookup: take(k, build(m, x)) => sum(m, mask(mine(m, k), x))",
        """
        error: rule `lookup`: `mine` takes 3 arguments, not 2
          --> <rules>:1:45
           |
         1 | lookup: take(k, build(m, x)) => sum(m, mask(mine(m, k), x))
           |                                             ^^^^
        """,
    ),
    "a requirement without a law": (
        "lookup: take(k, x) => sum(k, x)",
        """
        error: no rule rewrites `build` as `array`
          --> <rules>:1:9
           |
         1 | lookup: take(k, x) => sum(k, x)
           |         ^^^^
        """,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_in_a_head_is_shown_in_its_line(case: str) -> None:
    text, expected = CASES[case]
    with pytest.raises(Error) as caught:
        check(load(text))
    assert f"error: {caught.value}" == dedent(expected).strip()


def test_what_runs_a_head_that_no_rule_makes_is_shown_where_it_is_defined() -> None:
    with pytest.raises(Error, match="no rule makes `mask` as `result`") as caught:
        check(load("lookup: take(k, build(m, x)) => sum(m, take(k, x))"))
    assert (location := caught.value.location) is not None
    assert location.file == "test_allowed_heads.py"
    assert location.line == mask.__code__.co_firstlineno
    assert location.text[location.column - 1 : location.end_column - 1] == "mask"


WRONG = {
    "left": ("scan(s, build(a, m, x))", "scna(s, build(a, m, x))", "no `requirement` is called `scna`"),
    "right": ("merge(a, m, sort(s, x))", "mrge(a, m, sort(s, x))", "no `results` is called `mrge`"),
    "no law": ("\nlookup: ", "\n# lookup: ", "no rule rewrites `take`"),
    "nothing reaches it": ("across(a, scan(s, x))", "sum(a, scan(s, x))", "no rule makes `across` as `results`"),
}


@pytest.mark.parametrize(("good", "wrong", "error"), WRONG.values(), ids=WRONG)
def test_the_rules_of_masks_are_checked_when_they_load(
    good: str, wrong: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert device_local_op.WRITERS.rows
    text = Path(rule_files.__file__).with_name("masks.rules").read_text(encoding="utf-8")
    assert good in text
    changed = load(text.replace(good, wrong))

    def wrongly(_: Path) -> RuleSet:
        return changed

    monkeypatch.delitem(rule_files.LOADED, "masks", raising=False)
    monkeypatch.setattr(rule_files, "load", wrongly)
    with pytest.raises(Error, match=error):
        rule_files.rules("masks")


def test_a_term_that_no_definition_asks_for_is_no_unlawful_index() -> None:
    with pytest.raises(AssertionError, match="no definition asks for"):
        requirements.law(("slice", 0, 4, ("itoa", 16)))
