"""The page of a graph: each node in the lane of its device set, with what it waits for."""

# JAX annotates its functions only in part.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

import json
import re
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import pytest
from browser import Opened
from playwright.sync_api import Browser, expect
from report_graphs import GRAPHS, LONG, drawn, graph, on_two_sets
from report_plans import WORD

import partita as pt
from partita.compiler.graph.dataflow import html, kernels_json
from partita.compiler.page.string_table import Pools

Json = dict[str, Any]
ISSUED = ("kernel", "redistribute", "transfer")

TOUCHING = """() => {
    const boxes = [...document.querySelectorAll("[data-kernel] > .front")].map((each) => each.getBoundingClientRect());
    return boxes.filter((a, at) => boxes.some((b, other) => other < at
        && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length;
}"""
"""How many boxes lie on another one."""
SPILT = """() => [...document.querySelectorAll("[data-kernel]")].filter((node) => {
    const box = node.querySelector(".front").getBoundingClientRect();
    const inside = [...node.querySelectorAll("text:not([text-anchor])")];
    return inside.some((text) => text.getBoundingClientRect().right > box.right + 1);
}).map((node) => node.textContent)"""
"""The texts that reach out of their box."""


def made(name: str) -> tuple[Json, list[str]]:
    """The data of a graph's page, and its texts."""
    pools = Pools()
    return json.loads(json.dumps(kernels_json(graph(name), graph(name).nodes, pools, apart=True))), cast(
        "list[str]", pools.texts.items
    )


def said(name: str) -> dict[int, str]:
    """The issued nodes by their numbers in the data, as `a on A` or `A to B`."""
    data, texts = made(name)
    return {
        at: " to ".join(node["on"]) if node["kind"] == "transfer" else f"{texts[node['name']]} on {node['on'][0]}"
        for at, node in enumerate(data["nodes"])
        if node["kind"] in ISSUED
    }


def test_the_nodes_of_a_program_are_apart_and_in_order_of_issue() -> None:
    data, nodes = made("pathways")[0], said("pathways")
    assert [nodes[at] for at in data["issue"]] == [
        "kernel on A", "A to B", "kernel_1 on B", "A to C", "kernel_2 on C", "C to A", "kernel on A",
    ]  # fmt: skip


def test_a_node_waits_for_what_it_reads_and_for_the_one_before_it_on_its_devices() -> None:
    data, nodes = made("pathways")[0], said("pathways")
    reads = [(nodes[source], nodes[target]) for source, target, *_ in data["edges"] if source in nodes and target in nodes]
    assert reads == [
        ("kernel on A", "A to B"), ("A to B", "kernel_1 on B"), ("kernel on A", "A to C"), ("A to C", "kernel_2 on C"),
        ("kernel_2 on C", "C to A"), ("C to A", "kernel on A"),
    ]  # fmt: skip
    issue = data["issue"]
    assert [(issue.index(one) + 1, issue.index(other) + 1) for one, other in data["before"]] == [
        (1, 2), (2, 3), (2, 4), (4, 5), (5, 6), (4, 6), (6, 7),
    ]  # fmt: skip


def test_sets_that_share_devices_wait_for_each_other() -> None:
    both = pt.devices(4, "both")
    one, other, every = (pt.kernel(lambda x: x + 1.0, devices=each) for each in (both[:2], both[2:], both))
    found = pt.program(lambda x: (one(x), other(x), every(x))).graph(1.0)
    data = kernels_json(found, found.nodes, Pools(), apart=True)
    issue = cast("list[int]", data["issue"])
    assert [[issue.index(at) + 1 for at in pair] for pair in cast("list[list[int]]", data["before"])] == [
        [1, 2], [2, 3], [2, 4], [3, 4], [4, 5],
    ]  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_the_data_of_a_graph_has_its_nodes_and_its_bytes(name: str) -> None:
    data, texts = made(name)
    found = [node for node in graph(name).nodes if node.kind in ISSUED]
    shown = [data["nodes"][at] for at in data["issue"]]
    assert [(each["kind"], each["count"], tuple(each["on"])) for each in shown] == [(each.kind, 1, each.sets) for each in found]
    assert [each["reads"] for each in shown] == [sum(one.bytes for one in dict.fromkeys(each.operands)) for each in found]
    assert [each["makes"] for each in shown] == [sum(one.bytes for one in each.results) for each in found]
    assert [bool(each["sent"]) for each in shown] == [bool(each.collectives) for each in found]
    # A layout is written with its set.
    assert all(" on " in texts[edge[4]] for edge in data["edges"]) == bool(data["sets"])
    # Nothing waits for what is issued later.
    place = {at: number for number, at in enumerate(data["issue"])}
    assert all(place.get(one, -1) < place.get(other, len(place)) for one, other, *_ in data["edges"] + data["before"])


def test_a_node_has_the_line_for_which_it_runs_and_the_flops_of_a_device() -> None:
    pools = Pools()
    data: Json = kernels_json(graph("pathways"), graph("pathways").nodes, pools, apart=True)
    lines = cast("list[tuple[str, str, str]]", pools.lines.items)
    shown = [data["nodes"][at] for at in data["issue"]]
    codes = [lines[each["line"]][2] for each in shown]
    assert codes == ["x = a(v)", *["y = b(x)"] * 2, *["z = a(c(x))"] * 4]
    assert [each["flops"] for each in shown] == [2, None, 2, None, 2, None, 2]


def test_code_between_kernels_has_its_line() -> None:
    pools = Pools()
    data: Json = kernels_json(graph("a diamond"), graph("a diamond").nodes, pools, apart=True)
    lines = cast("list[tuple[str, str, str]]", pools.lines.items)
    assert {lines[each["line"]][2] for each in data["nodes"] if pools.texts.items[each["name"]] == "between"} == {
        'y = columns(second(x, params["w"]) * 2 + 1, params[WORD])'
    }


@pytest.mark.parametrize("name", GRAPHS)
def test_no_name_ends_an_element_of_the_page_of_a_graph(name: str) -> None:
    page = html(graph(name), graph(name).nodes)
    assert page.count("</script>") == 2 and WORD not in page
    assert page == html(graph(name), graph(name).nodes)


def test_a_page_of_a_graph_is_written_or_shown_like_that_of_a_plan(tmp_path: Path) -> None:
    graph("pathways").html(tmp_path / "graph.html")
    shown = graph("pathways").show(400)
    assert shown.html == (tmp_path / "graph.html").read_text(encoding="utf-8")
    assert repr(shown) == 'a page, which a notebook shows; graph.html("graph.html") writes it for a browser'
    with pytest.raises(pt.Error) as caught:
        graph("pathways").html(tmp_path / "graph.json")
    assert "a browser knows a page by that: graph.html(" in str(caught.value)


@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_of_every_graph_is_drawn_apart_from_the_others(
    name: str, width: int, chromium: Browser, folder: Path
) -> None:
    found = Opened(chromium, drawn(folder, name), width=width)
    page, nodes = found.page, graph(name).nodes
    expect(page.get_by_role("heading", level=1)).to_have_text(graph(name).name)
    expect(page.locator("[data-kernel]")).to_have_count(min(sum(each.kind in ISSUED for each in nodes), 600))
    for label in ("", "arguments and results"):
        if label:
            page.get_by_label(label).check()
        assert page.evaluate(TOUCHING) == 0
        assert page.evaluate(SPILT) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert {*page.locator("[data-lane]").evaluate_all("all => all.map((each) => each.dataset.lane)")} == (
        {*graph(name).sets} if len(graph(name).sets) > 1 else set[str]()
    )
    assert found.wrong == []
    found.close()


def test_a_chosen_node_says_what_it_waits_for(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, drawn(folder, "pathways"))
    page = found.page
    details = page.get_by_label("Details")
    page.locator("[data-kernel]").nth(6).click()
    expect(details).to_contain_text("7 of 7")
    expect(details).to_contain_text("A, device=2")
    expect(details).to_contain_text("z = a(c(x))")
    expect(details).to_contain_text(re.compile(r"Waits for what it reads\s*6\s*C → A\s*f32\[2\] on A\s*8\sB"))
    expect(page.locator(".node.waited")).to_have_count(1)
    details.locator("[data-node]").first.click()
    expect(details).to_contain_text(re.compile(r"kernel_2\s*f32\[2\] on C"))
    expect(details).to_contain_text(re.compile(r"Comes after, on its devices\s*4\s*A → C"))
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)
    assert found.wrong == []
    found.close()


def test_a_node_that_is_pointed_at_marks_what_it_waits_for(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, drawn(folder, "a diamond"))
    nodes = found.page.locator("[data-kernel]")
    last = nodes.filter(has_text="kernel").last
    last.hover()
    expect(found.page.locator(".node.waited")).to_have_count(2)
    expect(last.locator("title")).to_have_text(re.compile("waits for .*left → judge.*right → judge|waits for .*right → judge"))
    found.page.mouse.move(0, 0)
    expect(found.page.locator(".node.waited")).to_have_count(0)
    found.close()


def test_an_argument_of_any_name_is_told_as_it_is(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, drawn(folder, "a diamond"))
    found.page.get_by_label("arguments and results").check()
    found.page.locator("[data-kernel]").filter(has_text="kernel").last.click()
    expect(found.page.get_by_label("Details")).to_contain_text("Waits for")
    expect(found.page.locator("b", has_text="größe")).to_have_count(0)
    assert found.wrong == []
    found.close()


def test_the_page_of_a_plan_on_two_sets_has_their_lanes(chromium: Browser, folder: Path) -> None:
    on_two_sets().html(folder / "sets.html")
    found = Opened(chromium, folder / "sets.html")
    found.tab("Kernels")
    expect(found.page.locator("[data-lane]")).to_have_count(2)
    found.page.locator("[data-kernel]").filter(has_text="→").first.click()
    expect(found.page.get_by_label("Details")).to_contain_text("Waits for what it reads")
    assert found.wrong == []
    found.close()


def test_a_long_graph_has_edges_past_other_nodes_only_where_one_points(chromium: Browser, folder: Path) -> None:
    found = Opened(chromium, drawn(folder, LONG))
    far = found.page.locator(".edge.far")
    expect(far).to_have_count(0)
    found.page.locator("[data-kernel]").nth(2).hover()
    assert far.count() > 50
    found.close()


def test_a_kernel_that_reads_and_makes_nothing_is_on_its_set() -> None:
    one, other = (pt.devices(1, name) for name in ("one", "other"))
    shout = pt.kernel(lambda: jax.debug.print("{}", jnp.zeros(2)), devices=other)
    found = pt.program(lambda x: (pt.kernel(lambda x: x + 1.0, devices=one)(x), shout())).graph(1.0)
    data: Json = kernels_json(found, found.nodes, Pools(), apart=True)
    assert [data["nodes"][at]["on"] for at in data["issue"]] == [("one",), ("other",)]
    assert data["before"] == []
