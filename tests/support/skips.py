"""With `--no-skips` a run in which a test was skipped fails: it was to test what is installed for it."""

from typing import Any, cast

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail if any test is skipped")


def pytest_sessionfinish(session: pytest.Session) -> None:
    # The workers of xdist have no reporter.
    reporter = cast(Any, session.config.pluginmanager.get_plugin("terminalreporter"))
    if reporter and session.config.getoption("--no-skips") and (skipped := reporter.stats.get("skipped")):
        reporter.write_line(f"\n--no-skips: {len(skipped)} skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
