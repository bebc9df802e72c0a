"""`pytest --shuffle=SEED` runs the tests in another order, because no test may depend on those before it."""

from random import Random

import pytest

FIRST = "test_quiet.py"
"""It lets the collector walk all objects of the process: thousands of tests later, this takes seconds each time."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The hook that `conftest.py` imports. All workers of xdist must shuffle in the same way."""
    if (seed := config.getoption("--shuffle")) is not None:
        Random(seed).shuffle(items)
    else:
        items.sort(key=lambda item: item.path.name != FIRST)
