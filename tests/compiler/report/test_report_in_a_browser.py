"""The page in real Chromium: it opens, the slider moves, a collective is found with its cause, and nothing goes wrong."""

import re
from pathlib import Path

import pytest
from browser import Opened
from playwright.sync_api import Browser, expect
from report_plans import PLANS, planned, written

from partita.compiler.plan.history import prefixes

TABS = ("Collectives", "Layouts", "Conflicts & stops", "Memory", "Kernels", "Program")


def size(number: int) -> str:
    """Bytes as the page writes them."""
    units, at, rest = ("B", "KiB", "MiB", "GiB"), 0, float(number)
    while rest >= 1024 * 0.9995:
        rest, at = rest / 1024, at + 1
    return f"{rest:.{0 if at == 0 or rest >= 100 else 1 if rest >= 10 else 2}f}\u00a0{units[at]}"


@pytest.mark.parametrize(("name", "theme"), [*((name, "light") for name in PLANS), ("a training step", "dark")])
def test_every_view_of_every_plan_opens_without_an_error_or_a_request(
    name: str, theme: str, chromium: Browser, folder: Path
) -> None:
    found = Opened(chromium, written(folder, name), "dark" if theme == "dark" else "light")
    page = found.page
    expect(page.get_by_role("heading", level=1)).to_have_text(planned(name).source.traced.name)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    for tab in TABS:
        found.tab(tab)
        expect(page.get_by_role("tabpanel")).not_to_be_empty()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the window"
    assert found.wrong == []
    found.close()


def test_the_slider_moves_through_the_tactics_and_the_totals_are_those_of_each_plan(opened: Opened) -> None:
    page, steps = opened.page, prefixes(planned("a training step"))
    slider = page.get_by_role("slider", name="Tactics applied")
    expect(slider).to_have_value(str(len(steps) - 1))
    for number, plan in enumerate(steps):
        slider.fill(str(number))
        text = plan.actions[-1].text if plan.actions else "Nothing is placed"
        expect(page.locator(".tactic")).to_contain_text(text)
        expect(page.locator(f"[data-cell='received {number}'].on .figure")).to_have_text(size(plan.bytes_per_device()))
        expect(page.locator(f"[data-cell='memory {number}'].on .figure")).to_have_text(size(plan.memory().bytes))
        expect(page.get_by_role("tab", name="Collectives")).to_have_text(f"Collectives{sum(plan.counts().values())}")


def test_the_arrow_keys_move_the_slider(opened: Opened) -> None:
    page, slider = opened.page, opened.page.get_by_role("slider")
    page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value("2")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value("1")
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_value("2")
    expect(page.locator("[data-metric=memory] .delta")).to_have_text(re.compile("−"))


def test_a_collective_is_found_and_says_why_it_runs(opened: Opened) -> None:
    page, plan = opened.page, planned("a training step")
    opened.tab("Collectives")
    page.get_by_label("Search the collectives").fill("all_gather blocks/2/w1 forward")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.locator("tr[data-row]").click()
    details = page.get_by_label("Details")
    found = next(each for each in plan.collectives() if each.value == "params/blocks/2/w1" and each.direction == "forward")
    ((_, tactic),) = found.causes
    expect(details).to_contain_text(tactic)
    assert found.source is not None and found.source.place
    expect(details).to_contain_text(found.source.place)
    expect(details).to_contain_text('jax.nn.gelu(layer_norm(x, p["ln2"]) @ p["w1"])')
    expect(details).to_contain_text("already uses data by tactic 1, which was earlier than tactic 3")
    details.get_by_role("button", name="Show in the program").click()
    expect(page.locator(".edge.lit")).to_have_count(1)


def test_nothing_is_found_where_nothing_matches(opened: Opened) -> None:
    opened.tab("Collectives")
    opened.page.get_by_label("Search the collectives").fill("no such value")
    expect(opened.page.get_by_text("No collective matches.")).to_be_visible()


def test_a_scope_unfolds_and_folds(opened: Opened) -> None:
    page = opened.page
    before = page.locator(".node").count()
    page.get_by_role("button", name="Unfold forward").click()
    expect(page.locator(".frame")).to_have_count(1)
    assert page.locator(".node").count() > before
    page.get_by_role("button", name="Unfold block").click()
    expect(page.locator(".tree tr").filter(has_text="jax.nn.gelu")).to_have_count(1)
    page.get_by_role("button", name="Fold forward", exact=True).click()
    expect(page.locator(".frame")).to_have_count(0)
    assert page.locator(".node").count() == before


def test_a_link_leads_to_a_step_and_a_view(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "a training step"))
    expect(found.page.get_by_role("slider")).to_have_value("3")
    found.page.get_by_role("slider").fill("1")
    found.tab("Memory")
    assert found.page.url.endswith("#1/Memory")
    found.page.reload()
    expect(found.page.get_by_role("slider")).to_have_value("1")
    expect(found.page.get_by_role("tab", name="Memory")).to_have_attribute("aria-selected", "true")
    found.page.goto(f"{found.page.url.partition('#')[0]}#900/nothing")
    found.page.reload()
    expect(found.page.get_by_role("slider")).to_have_value("3")
    assert found.wrong == []
    found.close()


def test_of_many_scopes_only_some_are_drawn(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "named layers"))
    found.page.get_by_role("button", name="Unfold layer_* × 30").click()
    expect(found.page.locator(".node").filter(has_text="layer_")).to_have_count(24)
    expect(found.page.locator(".node").filter(has_text="more ops")).to_have_count(1)
    expect(found.page.locator(".tree tr").filter(has_text="layer_29")).to_have_count(1)
    assert found.wrong == []
    found.close()


def test_an_edge_says_which_collectives_are_on_it(opened: Opened) -> None:
    page = opened.page
    page.locator(".label").filter(has_text="reduce_scatter").click()
    details = page.get_by_label("Details")
    expect(details).to_contain_text("backward → adam")
    details.get_by_role("button", name="reduce_scatter").first.click()
    expect(details.get_by_role("heading", level=3)).to_have_text("reduce_scatter")
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)


def test_an_array_is_drawn_as_the_blocks_of_the_mesh(opened: Opened) -> None:
    page = opened.page
    opened.tab("Layouts")
    page.get_by_label("Search arrays").fill("params/blocks/0/w1")
    expect(page.locator(".blocks .block")).to_have_count(8)
    expect(page.locator(".blocks")).to_contain_text("data 3 · model 1")
    expect(page.locator(".blocks")).to_contain_text(
        "Each device has 4 × 16 elements, 256 B. No two devices have the same block."
    )
    page.get_by_label("Search arrays").fill("")
    page.get_by_label("Which arrays").select_option("changed")
    expect(page.locator("tr[data-value='params/blocks/0/w1']")).to_contain_text("f32[data*4, model*16]")
    assert page.locator("tr[data-value='params/blocks/0/b2']").count() == 0


def test_a_conflict_is_shown_with_its_ways_out(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "a conflict"))
    conflict = planned("a conflict").conflicts[0]
    expect(found.page.locator("[data-cell='open conflicts 1']")).to_have_text("⚠ 1")
    found.tab("Conflicts & stops")
    card = found.page.locator(".card.conflict")
    for claim in conflict.claims:
        expect(card).to_contain_text(claim.replace("`", ""))
    expect(card).to_contain_text("return x @ x.T")
    expect(card.locator("tbody tr")).to_have_count(len(conflict.resolutions))
    expect(card).to_contain_text(conflict.resolutions[0].tactic)
    expect(card).to_contain_text(size(conflict.resolutions[0].memory))
    card.get_by_role("button", name="Show in the program").click()
    expect(found.page.get_by_label("Details")).to_contain_text("dot_general")
    expect(found.page.locator(".node.lit")).to_have_count(1)
    found.close()


def test_a_conflict_that_repeats_in_equal_layers_is_one_card(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "equal conflicts"))
    assert len(planned("equal conflicts").conflicts) == 3
    expect(found.page.locator("[data-cell='open conflicts 1']")).to_have_text("⚠ 3")
    found.tab("Conflicts & stops")
    expect(found.page.locator(".card.conflict")).to_have_count(1)
    expect(found.page.locator(".card.conflict p").first).to_contain_text("dot_general × 3")
    expect(found.page.locator(".card.conflict .ways")).to_be_visible()
    found.close()


def test_memory_and_kernels_are_drawn(opened: Opened) -> None:
    page, plan = opened.page, planned("a training step")
    opened.tab("Memory")
    expect(page.locator(".chart svg")).to_have_count(2)
    expect(page.get_by_role("tabpanel")).to_contain_text(f"{size(plan.memory().bytes)} at the peak")
    opened.tab("Kernels")
    kernels = sum(each.kind == "kernel" for each in plan.lower("collective").nodes)
    expect(page.get_by_role("tabpanel")).to_contain_text(f"{kernels} kernels")
    page.locator("[data-kernel]").filter(has_text="reduce_scatter").first.click()
    expect(page.locator(".chosen-kernel")).to_contain_text("received")


def test_the_theme_can_be_changed(opened: Opened) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = opened.page.evaluate(colour)
    opened.page.get_by_role("button", name="Dark").click()
    assert opened.page.evaluate(colour) != light
    opened.page.get_by_role("button", name="Light").click()
    assert opened.page.evaluate(colour) == light


@pytest.mark.parametrize("width", [700, 900, 1300, 1600])
def test_the_page_fits_windows_of_other_sizes(width: int, chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "a training step"), width=width)
    for tab in TABS:
        found.tab(tab)
        assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
        assert found.page.evaluate("document.documentElement.scrollHeight <= innerHeight"), tab
        assert found.page.evaluate(CUT) == [], tab
    found.close()


CUT = """[...document.querySelectorAll(".figure, .stop .what, .list td, .tabs button, .title > *, .tree td span")]
    .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1
        || each.getBoundingClientRect().right > innerWidth)
    .map((each) => each.textContent)"""
"""The texts of figures, of tactics, of tables and tabs that are cut off, or that begin or end outside of the window."""


def test_figures_are_shorter_where_many_tactics_have_little_room(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "many tactics"), width=1300)
    assert found.page.evaluate(CUT) == []
    found.page.set_viewport_size({"width": 2600, "height": 800})
    assert found.page.evaluate(CUT) == []
    found.close()


def test_another_address_in_the_same_window_leads_to_its_step_and_view(opened: Opened) -> None:
    page = opened.page
    for address, step, tab in (
        ("#1/Memory", "1", "Memory"),
        ("#2", "2", "Program"),
        ("#%", "3", "Program"),
        ("#900/x", "3", "Program"),
    ):
        page.evaluate("address => { location.hash = address }", address)
        expect(page.get_by_role("slider")).to_have_value(step)
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        assert page.url.endswith(f"#{step}/{tab}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_box_with_an_open_conflict_is_marked_and_leads_to_its_ways_out(theme: str, chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "a conflict"), "dark" if theme == "dark" else "light")
    page = found.page
    marked = page.locator(".node.conflict")
    expect(marked).to_have_count(1)
    expect(marked.locator(".mark title")).to_have_text("An open conflict")
    expect(page.locator(".tree .mark")).to_have_count(1)
    page.get_by_role("button", name="Unfold gram").click()
    expect(page.locator(".node.conflict")).to_have_count(1)
    page.locator(".node.conflict .mark").click()
    expect(page.get_by_role("heading", name="Open conflicts")).to_be_visible()
    page.get_by_role("slider").fill("0")
    found.tab("Program")
    expect(page.locator(".node.conflict")).to_have_count(0)
    assert found.wrong == []
    found.close()


def test_the_slider_moves_between_programs_that_a_law_rewrites(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "a rewriting"))
    page = found.page
    page.get_by_role("button", name="Unfold chain").click()
    for number, plan in reversed([*enumerate(prefixes(planned("a rewriting")))]):
        page.get_by_role("slider").fill(str(number))
        expect(page.locator(".frame").first).to_be_visible()
        expect(page.locator(f"[data-cell='received {number}'].on .figure")).to_have_text(size(plan.bytes_per_device()))
    assert found.wrong == []
    found.close()


def test_a_name_is_text_and_never_markup(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, written(folder, "names"))
    found.tab("Layouts")
    expect(found.page.locator("tr[data-value]").filter(has_text="<b>größe")).to_have_count(1)
    assert found.page.locator("b:text('größe')").count() == 0
    found.close()


def test_a_notebook_shows_the_page_in_a_frame(chromium: Browser, tmp_path: Path) -> None:
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!doctype html>{getattr(planned('a training step').show(height=500), '_repr_html_')()}")  # noqa: B009
    found = Opened(chromium, cell)
    frame = found.page.frame_locator("iframe")
    frame.get_by_role("tab", name="Layouts").click()
    expect(frame.get_by_role("tab", name="Layouts")).to_have_attribute("aria-selected", "true")
    expect(frame.get_by_role("heading", level=1)).to_have_text(planned("a training step").source.traced.name)
    assert found.wrong == []
    found.close()
