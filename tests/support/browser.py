"""A real browser without a window: the Chromium of the machine, if it has one."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def browser() -> Generator[Browser]:
    """The browser; a test that asks for it is skipped on a machine without one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=[*FLAGS])
        yield made
        made.close()


class Opened:
    """A page of the browser, and what went wrong on it: errors, warnings, requests to a network."""

    def __init__(
        self, made: Browser, file: Path, theme: Literal["light", "dark"] = "light", width: int = 1280, height: int = 800
    ) -> None:
        self.page: Page = made.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
        self.wrong: list[str] = []
        self.page.set_default_timeout(20_000)
        self.page.on("console", lambda said: self.wrong.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", lambda request: self._request(request.url))
        self.page.goto(file.as_uri())

    def _request(self, url: str) -> None:
        if not url.startswith(("file:", "data:")):
            self.wrong.append(f"request: {url}")

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()
