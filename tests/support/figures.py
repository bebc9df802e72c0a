"""Figures that tests report, added up at the end of a run: how many of the possible cases were tested.

figures.add("programs that communicate", 31, of=40)   -->   programs that communicate: 31 of 40 (78 %)
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

KEY = "figure: "


class Figures:
    """The figures of one test, stored in the test's report, so that workers of xdist can add theirs."""

    def __init__(self, record: Callable[[str, object], None]) -> None:
        self.record = record

    def add(self, what: str, count: int, of: int) -> None:
        self.record(KEY + what, (count, of))


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Figures:
    """Counts to be reported at the end of the run."""
    return Figures(record_property)


def summarize(terminalreporter: Any) -> None:
    """Adds up the figures of all tests."""
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for report in terminalreporter.stats.get("passed", ()):
        for key, value in report.user_properties:
            if report.when == "call" and key.startswith(KEY):
                found[key.removeprefix(KEY)][0] += value[0]
                found[key.removeprefix(KEY)][1] += value[1]
    if found:
        terminalreporter.section("figures")
    for what, (count, of) in found.items():
        terminalreporter.write_line(f"{what}: {count} of {of} ({count / max(of, 1):.0%})")
