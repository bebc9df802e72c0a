"""A real browser without a window: the Chromium of the machine, if it has one."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, sync_playwright

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


IDLE: list[Page] = []
"""Pages of the browser that a test has closed. To open a file in one of them takes half of what a new page takes."""


@contextmanager
def browser() -> Generator[Browser]:
    """The browser; a test that asks for it is skipped on a machine without one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=[*FLAGS])
        yield made
        IDLE.clear()
        made.close()


class Opened:
    """A page of the browser, and what went wrong on it: errors, warnings, requests to a network."""

    def __init__(
        self, made: Browser, file: Path, theme: Literal["light", "dark"] = "light", width: int = 1280, height: int = 800
    ) -> None:
        self.page: Page = IDLE.pop() if IDLE else made.new_page()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=theme)
        self.page.set_default_timeout(20_000)
        self.wrong: list[str] = []
        self.page.on("console", self.said)
        self.page.on("pageerror", self.failed)
        self.page.on("request", self.requested)
        self.page.goto(file.as_uri())

    def close(self) -> None:
        """Leaves the page as a new one is."""
        self.page.remove_listener("console", self.said)
        self.page.remove_listener("pageerror", self.failed)
        self.page.remove_listener("request", self.requested)
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        IDLE.append(self.page)

    def said(self, message: ConsoleMessage) -> None:
        self.wrong.append(f"{message.type}: {message.text}")

    def failed(self, error: Error) -> None:
        self.wrong.append(f"error: {error}")

    def requested(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.wrong.append(f"request: {request.url}")

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()
