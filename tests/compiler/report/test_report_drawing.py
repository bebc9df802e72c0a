"""The drawing of the program: where its boxes, edges and labels are."""

from pathlib import Path
from typing import Any

import pytest
from browser import Opened
from playwright.sync_api import Browser, expect
from report_plans import written

MOST_UNFOLDED = 6

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


def unfold(page: Any, most: int) -> None:
    """Unfold the scopes of the list one after another, those of arguments and results last."""
    for _ in range(most):
        button = page.locator("tr[data-side=''] .twisty[aria-expanded=false]:enabled").first
        if not button.count():
            return
        button.click()


@pytest.mark.parametrize("name", ["a training step", "loops", "a conflict", "named layers"])
def test_the_graph_flows_downwards_folded_and_unfolded_and_its_results_are_last(
    name: str, chromium: Browser, folder: Path
) -> None:
    found = Opened(chromium, written(folder, name))
    for _ in range(MOST_UNFOLDED):
        assert found.page.evaluate(UPWARDS) == []
        assert found.page.evaluate(BESIDE_RESULTS) == 0
        unfold(found.page, 1)
    assert found.wrong == []
    found.page.close()


def test_no_edge_of_a_program_without_loops_leads_back_between_its_scopes(opened: Opened) -> None:
    assert opened.page.evaluate(BACK) == 0
    opened.page.get_by_role("button", name="Unfold params").click()
    assert opened.page.evaluate(BACK) == 0


def test_an_edge_back_to_a_scope_that_runs_earlier_says_so(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "loops"))
    unfold(found.page, 3)
    expect(found.page.locator(".edge.back title").first).to_contain_text("read in the next trip or the next layer")
    found.page.close()


def test_no_label_of_an_edge_lies_over_a_box_a_title_or_another_label(opened: Opened) -> None:
    for name in ("forward", "backward", "block"):
        assert opened.page.evaluate(COVERED) == 0
        opened.page.get_by_role("button", name=f"Unfold {name}", exact=True).first.click()
    assert opened.page.evaluate(COVERED) == 0


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
    found.page.close()
