"""Chromium, once for each file of tests, and the folder of the pages that they open."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Opened, browser
from playwright.sync_api import Browser
from report_plans import written


# It has an event loop, beside which no other one runs: the tests of other folders have their own.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def opened(chromium: Browser, folder: Path) -> Iterator[Opened]:
    """The page of a training step; at the end, nothing may have gone wrong on it."""
    found = Opened(chromium, written(folder, "a training step"))
    yield found
    assert found.wrong == []
    found.close()
