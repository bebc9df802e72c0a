"""The searches of the page: they look at what is shown, and find what the documentation says that they find."""

import re

import pytest
from browser import Opened
from documents import Page
from playwright.sync_api import Browser, expect
from root import ROOT

DOCUMENT = ROOT / "docs" / "report.md"


def searched(found: Opened, text: str) -> None:
    found.page.get_by_label("Search the collectives").fill(text)


def test_the_search_of_the_documentation_finds_the_collective_of_its_program(chromium: Browser) -> None:
    document = Page(DOCUMENT)
    document.python(document.blocks()[0])
    (text,) = re.findall(r"The search looks[^`]*`([^`]+)`", DOCUMENT.read_text())
    kind, value, direction = text.split()
    found = Opened(chromium, document.namespace["folder"] / "plan.html")
    found.tab("Collectives")
    searched(found, text)
    row = found.page.locator("tr[data-row]")
    expect(row).to_have_count(1)
    for word in (kind, f"params/{value}", direction):
        expect(row).to_contain_text(word)
    expect(row.locator("mark")).to_have_text([value, kind, direction])
    expect(found.page.get_by_role("status")).to_contain_text("1 collective in 1 row,")
    assert found.wrong == []
    found.close()


def test_each_row_is_found_by_all_that_it_shows(opened: Opened) -> None:
    opened.tab("Collectives")
    rows = opened.page.locator("tr[data-row]")
    shown = {rows.nth(at).get_attribute("data-row"): rows.nth(at).inner_text() for at in range(rows.count())}
    assert len(shown) > 20
    for number, text in shown.items():
        searched(opened, " ".join(text.split()))
        expect(opened.page.locator(f"tr[data-row='{number}']")).to_have_count(1)


@pytest.mark.parametrize("word", ["gelu", "DataParallel(axis", "params/**/w*"])
def test_what_no_row_shows_finds_none(word: str, opened: Opened) -> None:
    """A word of the source line, or of the text of a tactic."""
    opened.tab("Collectives")
    searched(opened, word)
    expect(opened.page.get_by_text("No collective matches.")).to_be_visible()


def test_a_row_that_stands_for_several_values_says_by_which_of_them_it_is_found(opened: Opened) -> None:
    opened.tab("Collectives")
    searched(opened, "all_gather blocks/2/w1 backward")
    row = opened.page.locator("tr[data-row]")
    expect(row).to_have_count(1)
    expect(row.locator(".by")).to_have_text("params/blocks/2/w1")
    expect(row.locator(".by mark")).to_have_text("blocks/2/w1")


def test_the_example_in_the_empty_search_finds_something(opened: Opened) -> None:
    opened.tab("Collectives")
    example = opened.page.get_by_label("Search the collectives").get_attribute("placeholder") or ""
    searched(opened, example.removeprefix("Search, for example "))
    expect(opened.page.locator("tr[data-row]").first).to_be_visible()


@pytest.mark.parametrize("text", ["params/blocks/*/w1", "w1 × 3", "f32[data*4, model*16]", "params/blocks/2/w1"])
def test_an_array_is_found_by_what_its_row_shows_and_by_its_own_name(text: str, opened: Opened) -> None:
    opened.tab("Layouts")
    opened.page.get_by_label("Search arrays").fill(text)
    expect(opened.page.locator("tr[data-value]").filter(has_text="params/blocks/*/w1")).to_have_count(1)


def test_the_key_of_the_search_leads_to_the_search_of_the_open_view(opened: Opened) -> None:
    opened.tab("Layouts")
    opened.page.keyboard.press("/")
    expect(opened.page.get_by_label("Search arrays")).to_be_focused()
    opened.page.keyboard.press("Escape")
    opened.tab("Memory")
    opened.page.keyboard.press("/")
    expect(opened.page.get_by_label("Search the collectives")).to_be_focused()


def test_the_sum_of_a_gradient_is_found_by_its_parameter(opened: Opened) -> None:
    opened.tab("Collectives")
    searched(opened, "reduce_scatter blocks/2/w1")
    row = opened.page.locator("tr[data-row]")
    expect(row).to_have_count(1)
    expect(row.locator(".by")).to_have_text("grad(params/blocks/2/w1)")
