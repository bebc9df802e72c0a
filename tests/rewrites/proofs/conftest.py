"""Without Z3, which is in an extra of its own, these tests are left out; `make prove` installs it and runs them.

The processes of a session share the record of what is known of laws. The session ends with the tables of it.
"""

import pickle
from importlib.util import find_spec

import pytest
from rich.console import Console


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if find_spec("z3") or config.getoption("--no-skips") else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first, and the page when its laws are proved."""
    items.sort(key=lambda item: ("test_the_page" in item.name) - ("test_laws" in item.nodeid))


@pytest.fixture(scope="session", autouse=True)
def shared_record(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """A folder of this session, which is new: nothing is known from before."""
    from partita.rewrites.proofs.record import share

    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "record"
    folder.mkdir(exist_ok=True)
    share(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for state in ("passed", "failed") for each in terminalreporter.stats.get(state, ())]
    found = [each for report in reports if report.when == "call" for each in report.user_properties]
    if found:
        from partita.rewrites.proofs.laws import groups
        from partita.rewrites.proofs.table import printed

        for group in groups():
            printed(Console(), group, [row for title, rows in found if title == group.title for row in pickle.loads(rows)])
