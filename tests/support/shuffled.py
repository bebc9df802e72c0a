"""`pytest --shuffle=SEED` runs the tests in another order: what one of them shows must not depend on those before it."""

from random import Random

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The hook that `conftest.py` takes from here. All workers of xdist shuffle alike, as they must."""
    if (seed := config.getoption("--shuffle")) is not None:
        Random(seed).shuffle(items)
