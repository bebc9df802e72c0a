"""What keeps the page of a large program fast: it draws a bounded part of it, and moves without arranging anything anew."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from browser import Opened
from playwright.sync_api import Browser, expect
from report_plans import LONG, planned, written

TABS = ("Collectives", "Layouts", "Conflicts & stops", "Memory", "Kernels", "Program")
MOST_ELEMENTS = 5_000

BOXES = """() => Object.fromEntries([...document.querySelectorAll(".node")]
    .map((node) => [node.dataset.box, node.getAttribute("transform") + node.querySelector(".front").getAttribute("width")]))"""
"""Where the boxes are in the drawing, and how wide they are."""


@pytest.fixture(scope="module")
def large(chromium: Browser, folder: Path) -> Iterator[Opened]:
    found = Opened(chromium, written(folder, LONG))
    yield found
    assert found.wrong == []
    found.close()


def elements(found: Opened) -> int:
    return cast(int, found.page.evaluate("document.querySelectorAll('*').length"))


def unfold(found: Opened, times: int) -> None:
    for _ in range(times):
        found.page.locator("tr[data-side=''] .twisty[aria-expanded=false]:enabled").first.click()


def test_each_view_of_10_000_ops_has_a_bounded_number_of_elements(large: Opened) -> None:
    assert len(planned(LONG).source.program.nodes) > 10_000
    for tab in TABS:
        large.tab(tab)
        expect(large.page.get_by_role("tabpanel")).not_to_be_empty()
        assert elements(large) < MOST_ELEMENTS, tab
    large.tab("Layouts")
    large.page.get_by_label("Which arrays").select_option("all")
    assert elements(large) < MOST_ELEMENTS
    large.tab("Program")
    unfold(large, 3)
    expect(large.page.locator(".node").filter(has_text="more ops").first).to_be_visible()
    assert elements(large) < MOST_ELEMENTS


def test_the_slider_moves_no_box(opened: Opened) -> None:
    slider = opened.page.get_by_role("slider")
    unfold(opened, 2)
    before = opened.page.evaluate(BOXES)
    for step in (0, 1, 2, 3):
        slider.fill(str(step))
        assert opened.page.evaluate(BOXES) == before
    slider.fill("0")
    expect(opened.page.locator(".label")).to_have_count(0)


def test_a_drawing_moves_with_the_pointer_and_grows_under_it(opened: Opened) -> None:
    page = opened.page
    title = page.locator(".node text").first
    start, frame = title.bounding_box(), page.locator(".canvas").bounding_box()
    assert start and frame
    x, y = frame["x"] + frame["width"] - 60, frame["y"] + 40
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 90, y + 30, steps=4)
    expect(page.locator(".canvas > svg")).to_have_class("moving")
    page.mouse.up()
    expect(page.locator(".canvas > svg")).not_to_have_class("moving")
    moved = title.bounding_box()
    assert moved and (round(moved["x"] - start["x"]), round(moved["y"] - start["y"])) == (-90, 30)
    page.mouse.wheel(0, -200)
    page.wait_for_function(
        "(width) => document.querySelector('.node text').getBoundingClientRect().width > 1.1 * width", arg=moved["width"]
    )
