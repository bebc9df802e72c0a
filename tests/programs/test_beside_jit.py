"""The table `benchmarks/results/ranges.md` says what plans do today, and jax.jit receives no fewer bytes."""

import json
from typing import Any

import pytest

from partita.benchmarks import ranges
from partita.benchmarks.case import Case, listed
from partita.benchmarks.report import RESULTS

MEASURED: list[dict[str, Any]] = [
    dict(zip(ranges.COLUMNS, row, strict=True)) for row in json.loads((RESULTS / "ranges.json").read_text())["rows"]
]
CASES = [case for case, _ in ranges.cases()]

MORE = {"roll by 1", "jax-ml/jax#15773: roll by 1", "openxla/xla#34710: concatenate four"}
"""Programs in which Partita sends more than jax.jit: a device sends its pieces one by one, and every device takes part."""


def test_every_program_is_in_the_table() -> None:
    assert [each[""] for each in MEASURED] == [case.name for case in CASES]


@pytest.mark.parametrize(("case", "measured"), zip(CASES, MEASURED, strict=True), ids=[case.name for case in CASES])
def test_a_plan_sends_what_the_table_says(case: Case, measured: dict[str, Any]) -> None:
    assert (listed(case.plan.counts()), case.plan.bytes_per_device()) == (measured["partita"], measured["bytes, partita"])


@pytest.mark.parametrize("measured", MEASURED, ids=[each[""] for each in MEASURED])
def test_jit_receives_no_fewer_bytes(measured: dict[str, Any]) -> None:
    assert (measured["bytes, partita"] > measured["bytes, jit"]) == (measured[""] in MORE)
