"""Without Ray, which is in an extra of its own, these tests are left out; `make extras` installs it and runs them."""

from importlib.util import find_spec

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if find_spec("ray") or config.getoption("--no-skips") else True
