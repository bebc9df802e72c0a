"""The drawing of the program: where its boxes, edges and labels are."""

import re
from pathlib import Path
from typing import Any

import pytest
from browser import Opened
from playwright.sync_api import Browser, expect
from report_plans import written

MOST_UNFOLDED = 8

UPWARDS = """() => {
    const box = (id) => document.querySelector(`[data-box="${id}"] .front`).getBoundingClientRect();
    return [...document.querySelectorAll(".edge:not(.back)")]
        .filter((edge) => { const [from, to] = edge.dataset.flow.split(" ").map(box); return from.bottom > to.top + 0.5; })
        .map((edge) => edge.dataset.flow);
}"""
"""The edges that do not lead from a box to one below it, of those that do not lead back to an earlier scope."""

BACK = "document.querySelectorAll('.edge.back').length"

BESIDE_RESULTS = """() => {
    const boxOf = (node) => [node.dataset.last !== undefined, node.querySelector(".front").getBoundingClientRect()];
    const boxes = [...document.querySelectorAll(".node")].map(boxOf);
    const top = Math.min(...boxes.filter(([last]) => last).map(([, box]) => box.top));
    return boxes.filter(([last, box]) => !last && box.bottom > top).length;
}"""
"""How many boxes are not above all results."""

COVERED = """() => {
    const at = (each) => each.getBoundingClientRect();
    const labels = [...document.querySelectorAll(".label .chip")].map(at);
    const others = [...document.querySelectorAll(".node .front, .head > text")].map(at);
    const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    return labels.filter((label, index) => [...others, ...labels.slice(index + 1)].some((other) => over(label, other))).length;
}"""
"""How many labels of edges lie over a box, over the title of a frame, or over another label."""


CROSSED = """() => {
    const at = (each) => each.getBoundingClientRect();
    const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const within = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
    const boxes = [...document.querySelectorAll(".node .front")].map(at);
    const frames = [...document.querySelectorAll(".frame > rect")].map(at);
    const titles = [...document.querySelectorAll(".head > text")].map(at);
    const pairs = (some) => some.flatMap((a, index) => some.slice(index + 1).map((b) => [a, b]));
    return pairs(boxes).filter(([a, b]) => over(a, b)).length
        + pairs(frames).filter(([a, b]) => over(a, b) && !within(a, b) && !within(b, a)).length
        + boxes.filter((box) => frames.some((frame) => over(box, frame) && !within(box, frame))).length
        + titles.filter((title) => boxes.some((box) => over(box, title))).length;
}"""
"""How many boxes and frames lie over one another without one being in the other, or over the title of a frame."""


def unfold(page: Any, most: int) -> None:
    """Unfold the scopes of the list one after another, those of arguments and results last."""
    for _ in range(most):
        button = page.locator("tr[data-side=''] .twisty[aria-expanded=false]:enabled").first
        if not button.count():
            return
        button.click()


@pytest.mark.parametrize("name", ["a training step", "loops", "a conflict", "named layers"])
def test_the_graph_flows_downwards_folded_and_unfolded_with_its_results_last_and_nothing_covered(
    name: str, chromium: Browser, folder: Path
) -> None:
    found = Opened(chromium, written(folder, name))
    for _ in range(MOST_UNFOLDED):
        assert found.page.evaluate(UPWARDS) == []
        assert found.page.evaluate(BESIDE_RESULTS) == 0
        assert found.page.evaluate(CROSSED) == 0
        assert found.page.evaluate(COVERED) == 0
        unfold(found.page, 1)
    assert found.wrong == []
    found.close()


def test_no_edge_of_a_program_without_loops_leads_back_between_its_scopes(opened: Opened) -> None:
    assert opened.page.evaluate(BACK) == 0
    opened.page.get_by_role("button", name="Unfold params").click()
    assert opened.page.evaluate(BACK) == 0


def test_an_edge_back_to_a_scope_that_runs_earlier_says_so(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "loops"))
    unfold(found.page, 3)
    expect(found.page.locator(".edge.back title").first).to_contain_text("read in the next trip or the next layer")
    found.close()


LOOPS = """() => {
    const at = (each) => { const { left, right } = each.getBoundingClientRect(); return [left, right]; };
    const [course, bars] = document.querySelectorAll(".chart svg");
    const all = (chart, name) => [...chart.querySelectorAll(`rect[aria-label^="${name} "]`)].map(at);
    return { course: all(course, "loop"), bars: all(bars, "loop"), arrays: all(bars, "array"), frame: at(course) };
}"""
"""Where the loops and the arrays are on the axis of time."""


def test_a_loop_is_as_long_on_the_memory_axis_as_one_of_its_trips_and_holds_what_it_stores(
    chromium: Browser, folder: Path
) -> None:
    found = Opened(chromium, written(folder, "loops"))
    found.tab("Memory")
    expect(found.page.locator(".chart").first).to_contain_text("scan#0 × 8")
    drawn = found.page.evaluate(LOOPS)
    frame = drawn["frame"][1] - drawn["frame"][0]
    (scan, *_) = drawn["course"]
    assert drawn["course"] == drawn["bars"] and len(drawn["course"]) == 3
    assert scan[1] - scan[0] > 0.4 * frame, "most steps of this program are those of a trip of its scan"
    within = [(left, right) for left, right in drawn["arrays"] if scan[0] - 1 < left and right < scan[1] + 1]
    assert len(within) > 5 and max(right - left for left, right in within) < scan[1] - scan[0] + 1
    assert found.wrong == []
    found.close()


PANEL = """(id) => {
    const at = (selector) => document.querySelector(selector).getBoundingClientRect();
    const [box, panel, frame] = [at(`[data-box="${id}"] .front`), at(".inspector"), at(".canvas > svg")];
    const over = box.left < panel.right && panel.left < box.right && box.top < panel.bottom && panel.top < box.bottom;
    return !over && box.left >= frame.left && box.top >= frame.top && box.right <= frame.right && box.bottom <= frame.bottom;
}"""
"""Whether a box is seen whole beside the panel."""


@pytest.mark.parametrize("size", [(420, 800), (900, 700), (1280, 800), (2560, 1400)], ids=lambda size: "x".join(map(str, size)))
def test_the_panel_covers_nothing_of_the_box_that_it_tells_of(size: tuple[int, int], chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "a training step"), width=size[0], height=size[1])
    page = found.page
    boxes = [box.get_attribute("data-box") for box in page.locator(".node").all()]
    for box in boxes:
        page.locator(f"[data-box='{box}']").dispatch_event("click")
        expect(page.get_by_label("Details")).to_be_visible()
        page.wait_for_function(PANEL, arg=box)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert found.wrong == []
    found.close()


def test_the_drawing_stays_where_it_is_when_the_panel_opens_beside_it(opened: Opened) -> None:
    box = opened.page.locator(".node").filter(has_text="forward")
    before = box.locator("text").first.bounding_box()
    box.click()
    expect(opened.page.get_by_label("Details")).to_be_visible()
    assert box.locator("text").first.bounding_box() == before


def test_what_repeats_in_equal_layers_is_one_row_of_the_panel(opened: Opened) -> None:
    page, details = opened.page, opened.page.get_by_label("Details")
    page.locator(".node").filter(has_text="params").click()
    expect(details.locator(".values li").filter(has_text="blocks/*/w1 × 3")).to_have_count(1)
    assert details.locator(".values li").filter(has_text=re.compile(r"blocks/\d")).count() == 0
    page.locator(".node").filter(has_text="forward").click()
    rows = details.locator(".rows li")
    names = [text.split(" for ")[0] for text in rows.all_inner_texts()]
    assert "all_gather of params/blocks/*/w1 × 3" in names and len({*rows.all_inner_texts()}) == rows.count()
    rows.filter(has_text="all_gather of params/blocks/*/w1 × 3").get_by_role("button").click()
    expect(details.locator(".members summary")).to_have_text("params/blocks/*/w1 × 3 768\u00a0B each")
    details.locator(".members summary").click()
    expect(details.locator(".members details > code")).to_have_text([f"params/blocks/{layer}/w1" for layer in range(3)])
    reasons = details.locator(".reasons li").all_inner_texts()
    assert len({*reasons}) == len(reasons) > 2


SEEN = """(fold) => {
    const at = (selector) => document.querySelector(selector).getBoundingClientRect();
    const [title, canvas] = [at(`[data-head="${fold}"] > text`), at(".canvas > svg")];
    const across = title.left >= canvas.left && title.left <= canvas.right - 40;
    return across && title.top >= canvas.top && title.bottom <= canvas.bottom;
}"""


@pytest.mark.parametrize("width", [420, 1280])
def test_the_beginning_of_what_is_unfolded_is_in_view(width: int, chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "a training step"), width=width)
    for _ in range(6):
        row = found.page.locator("tr[data-side='']:has(.twisty[aria-expanded=false]:enabled)").first
        fold = row.get_attribute("data-fold")
        row.get_by_role("button").click()
        found.page.wait_for_function(SEEN, arg=f"f{fold}")
    found.close()
