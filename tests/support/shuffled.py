"""`pytest --shuffle=SEED` runs the tests in another order, because no test may depend on those before it."""

from random import Random

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The hook that `conftest.py` imports. All workers of xdist must shuffle in the same way."""
    if (seed := config.getoption("--shuffle")) is not None:
        Random(seed).shuffle(items)
