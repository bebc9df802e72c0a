"""What the page takes of a window: from narrow to wide, light and dark, nothing is cut off, hidden, or too faint to read."""

from pathlib import Path
from typing import Literal

import pytest
from browser import Opened
from playwright.sync_api import Browser, expect
from report_plans import planned, written

TABS = ("Collectives", "Layouts", "Conflicts & stops", "Memory", "Kernels", "Program")
SIZES = ((420, 800), (700, 800), (960, 720), (1280, 600), (1280, 800), (1600, 900), (2560, 1400))

VIEW_TOP = "document.querySelector('.view').getBoundingClientRect().top / innerHeight"

CUT = """[...document.querySelectorAll(".figure, .metric > *, .what, .tabs button, .title > *, .list td, .tree td span, h3, p")]
    .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1
        || each.getClientRects().length && each.getBoundingClientRect().right > innerWidth + 1)
    .map((each) => each.textContent)"""
"""The texts that are cut off, or that end outside of the window."""


@pytest.mark.parametrize("name", ["a training step", "many tactics", "nothing placed"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_all_that_is_above_the_view_takes_at_most_a_fifth_of_the_height(
    size: tuple[int, int], name: str, chromium: Browser, folder: Path
) -> None:
    found = Opened(chromium, written(folder, name), width=size[0], height=size[1])
    assert found.page.evaluate(VIEW_TOP) <= 1 / 5
    expect(found.page.locator("[data-metric]")).to_have_count(4)
    expect(found.page.get_by_role("slider")).to_be_in_viewport()
    expect(found.page.get_by_role("tab")).to_have_count(6)
    found.close()


@pytest.mark.parametrize(
    ("metric", "view"),
    [("received", "Collectives"), ("collectives", "Collectives"), ("memory", "Memory"), ("work", "Conflicts & stops")],
)
def test_the_name_of_a_figure_leads_to_the_view_that_tells_of_it(metric: str, view: str, opened: Opened) -> None:
    opened.page.locator(f"[data-metric={metric}]").click()
    expect(opened.page.get_by_role("tab", name=view)).to_have_attribute("aria-selected", "true")
    if view == "Collectives":
        order = "received" if metric == "received" else "times"
        expect(opened.page.locator("th[aria-sort=descending]")).to_contain_text(order)


@pytest.mark.parametrize("size", [(1280, 800), (420, 800)])
def test_the_text_of_a_tactic_that_is_longer_than_the_window_is_whole_when_it_is_pointed_at(
    size: tuple[int, int], chromium: Browser, folder: Path
) -> None:
    found = Opened(chromium, written(folder, "a training step"), width=size[0], height=size[1])
    found.page.locator(".tactic").focus()
    text = found.page.locator(".tactic code")
    expect(text).to_contain_text(planned("a training step").actions[-1].text)
    assert text.evaluate("(each) => each.scrollWidth <= each.clientWidth && each.getBoundingClientRect().right <= innerWidth")
    found.close()


@pytest.mark.parametrize("name", ["a training step", "loops", "names"])
@pytest.mark.parametrize("width", [420, 600, 760, 960, 1280, 2560])
def test_in_no_view_is_a_text_cut_off_or_outside_of_the_window(name: str, width: int, chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, name), width=width)
    for tab in TABS:
        found.tab(tab)
        assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
        assert found.page.evaluate("document.documentElement.scrollHeight <= innerHeight"), tab
        assert found.page.evaluate(CUT) == [], tab
    assert found.wrong == []
    found.close()


FAINT = """(least) => {
    const element = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const canvas = element.getContext("2d", { willReadFrequently: true });
    const painted = (colours) => {
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((each) => each / 255);
    };
    const linear = (each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4;
    const light = (colours) => { const [r, g, b] = painted(colours).map(linear); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = (each) => each ? [...behind(each.parentElement), getComputedStyle(each).backgroundColor] : ["white"];
    const faint = [];
    for (const text of document.querySelectorAll("#app *:not(svg *)")) {
        const says = [...text.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
        if (!says || !text.getClientRects().length) continue;
        const below = behind(text);
        const [a, b] = [light(below), light([...below, getComputedStyle(text).color])].sort();
        if ((b + 0.05) / (a + 0.05) < least) faint.push(`${text.textContent}: ${((b + 0.05) / (a + 0.05)).toFixed(2)}`);
    }
    return faint;
}"""
"""The texts whose contrast to what is behind them is less than asked for, as WCAG counts it."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_the_contrast_that_wcag_asks_for(
    theme: Literal["light", "dark"], chromium: Browser, folder: Path
) -> None:
    for name in ("a training step", "a conflict"):
        found = Opened(chromium, written(folder, name), theme)
        for tab in TABS:
            found.tab(tab)
            assert found.page.evaluate(FAINT, 4.5) == [], tab
        found.page.locator(".node").first.click()
        assert found.page.evaluate(FAINT, 4.5) == []
        found.close()


@pytest.mark.parametrize("value", ["params/embed", "params/blocks/*/w1"])
def test_the_name_of_a_row_of_memory_leads_to_the_program(value: str, opened: Opened) -> None:
    opened.tab("Memory")
    opened.page.get_by_role("button", name=value, exact=True).first.click()
    expect(opened.page.get_by_role("tab", name="Program")).to_have_attribute("aria-selected", "true")
    expect(opened.page.get_by_label("Details").locator(".big")).to_have_text(value.replace("*", "0"))
    expect(opened.page.locator(".node.lit")).to_have_count(1)
