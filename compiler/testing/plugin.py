"""A pytest plugin: the fixture `plan_file` compares a plan with the file beside a test, and `--update-plans` writes the file.

def test_the_plan(plan_file):
    plan_file(pt.plan(train_step, mesh, *shapes).apply(*TACTICS), "plan.partita", all_gather=0, memory="<16GiB")

It imports nothing of Partita before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..api.plan import Plan


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("partita")
    group.addoption("--update-plans", action="store_true", help="write the plan files anew instead of comparing them")


@pytest.fixture
def plan_file(request: pytest.FixtureRequest) -> Callable[..., Plan]:
    """Compares a plan with a plan file, by default `plan.partita` beside the test; then `plan.expect` with the other arguments.

    The test fails if the plan has other tactics than the file, or if a tactic does something else than the file says: it claims
    other values, or causes other collectives. `pytest --update-plans` writes the file. Returns the plan.

        plan_file(plan)     -->     the plan of train_step is not that of plan.partita: 1 of its 3 tactics does something else
    """
    folder, update = Path(str(request.path)).parent, bool(request.config.getoption("--update-plans"))

    def compare(plan: Plan, file: str | Path = "plan.partita", **budgets: int | str) -> Plan:
        from ...dialects.ground.errors import Error
        from .plan_files import keep

        __tracebackhide__ = True
        try:
            keep(plan, folder / file, update)
            return plan.expect(**budgets)
        except Error as error:
            problem = f"error: {error}"
        pytest.fail(problem, pytrace=False)

    return compare
