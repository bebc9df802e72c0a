"""The table `benchmarks/results/ranges.md` says what plans send today, and that `jax.jit` sends no less."""

import json
from typing import Any

import pytest
from root import ROOT

from partita.benchmarks import ranges
from partita.benchmarks.case import Case, listed
from partita.benchmarks.report import RESULTS

CASES = [case for case, _ in ranges.cases()]
MEASURED: dict[str, dict[str, Any]] = {
    row[0]: dict(zip(ranges.COLUMNS, row, strict=True)) for row in json.loads((RESULTS / "ranges.json").read_text())["rows"]
}


def test_every_program_is_in_the_table():
    assert list(MEASURED) == [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_plan_sends_what_the_table_says(case: Case):
    told = MEASURED[case.name]
    assert (listed(case.plan.counts()), case.plan.bytes_per_device()) == (told["partita"], told["bytes, partita"])


def test_a_plan_never_sends_more_than_jit():
    assert not [name for name, told in MEASURED.items() if told["bytes, partita"] > told["bytes, jit"]]


def test_the_page_shows_the_programs_for_which_jit_gathers():
    """Those for which it receives far more than a plan."""
    far = [
        each for each in MEASURED.values() if "all_gather" in each["jit"] and each["bytes, jit"] > 1.5 * each["bytes, partita"]
    ]
    rows = [f"| {each['']} | {each['bytes, partita']:,} | {each['bytes, jit']:,} |" for each in far]
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert "\n".join(["| program | bytes, partita | bytes, jit |", "|---|---|---|", *rows, ""]) in page
