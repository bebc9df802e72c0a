"""Without Z3, which is in an extra of its own, these tests are left out; `make prove` installs it and runs them."""

from importlib.util import find_spec

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if find_spec("z3") or config.getoption("--no-skips") else True
