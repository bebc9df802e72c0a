"""The data of a page is what the plans answer: after each tactic, each collective with its line and its tactic."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from report_plans import PLANS, planned

from partita.compiler.api.plan import Plan
from partita.compiler.plan.history import prefixes
from partita.compiler.report.data import data
from partita.compiler.report.page import html

NAMES = list(PLANS)
Json = dict[str, Any]


@cache
def made(name: str) -> tuple[Json, Sequence[Plan]]:
    """The data as a page reads it, and the plan of each step."""
    return json.loads(json.dumps(data(planned(name)))), prefixes(planned(name))


def text(page: Json, number: int) -> str:
    return page["texts"][number]


@pytest.mark.parametrize("name", NAMES)
def test_a_step_has_the_totals_of_its_plan(name: str) -> None:
    page, steps = made(name)
    assert len(page["steps"]) == len(steps)
    for step, plan in zip(page["steps"], steps, strict=True):
        assert step["counts"]["always"] == plan.counts()
        assert step["counts"]["in_branches"] == plan.counts().in_branches
        assert step["bytes"] == plan.bytes_per_device()
        assert step["flops"] == plan.flops_per_device().known
        assert step["excess"] == plan.silent().flops
        assert step["memory"]["bytes"] == plan.memory().bytes
        assert len(step["open"]["conflicts"]) == len(plan.conflicts)


@pytest.mark.parametrize("name", NAMES)
def test_each_collective_is_there_with_its_line_and_its_tactic(name: str) -> None:
    page, steps = made(name)
    for step, plan in zip(page["steps"], steps, strict=True):
        found = Counter(
            (
                text(page, member[0]),
                row["kind"],
                tuple(row["axes"]),
                row["times"],
                row["where"],
                text(page, row["use"]),
                page["lines"][row["line"]][0] if row["line"] >= 0 else "",
                row["made"],
                tuple(row["tactics"]),
                member[3],
            )
            for row in step["sent"]
            for member in row["members"]
        )
        assert found == Counter(
            (
                each.value,
                each.kind,
                each.axes,
                each.times,
                each.where,
                each.use,
                each.source.place if each.source else "",
                each.is_of_maker,
                tuple(cause.number for cause in each.causes),
                each.total_bytes,
            )
            for each in plan.collectives()
        )


@pytest.mark.parametrize("name", NAMES)
def test_each_row_of_collectives_has_the_reasons_of_its_first_member(name: str) -> None:
    page, steps = made(name)
    for step, plan in zip(page["steps"], steps, strict=True):
        collectives = {(each.value, each.kind, each.numbers, each.use): each for each in reversed(plan.collectives())}
        for row in step["sent"]:
            numbers = ", ".join(map(str, row["tactics"]))
            key = text(page, row["members"][0][0]), row["kind"], numbers, text(page, row["use"])
            expected = plan.explain(collectives[key]).steps[1:]
            if [list(each.tactics) for each in expected] == [reason[2] for reason in row["reasons"]]:
                assert [reason[1] for reason in row["reasons"]] == [each.depth for each in expected]
            assert row["reasons"]


@pytest.mark.parametrize("name", NAMES)
def test_the_layouts_of_a_step_are_those_of_the_steps_before_with_its_changes(name: str) -> None:
    page, steps = made(name)
    now, before = list[int](), -1
    for step, plan in zip(page["steps"], steps, strict=True):
        now = now if step["program"] == before else [-1] * len(page["programs"][step["program"]]["name"])
        before = step["program"]
        for value, layout in zip(step["layouts"]["values"], step["layouts"]["layouts"], strict=True):
            assert now[value] != layout
            now[value] = layout
        for name_of, value in plan.source.addresses.arguments.items():
            # At the boundary a padded dim is whole, and the plan says how it is placed inside.
            if "pad" not in plan.layout(name_of)[name_of]:
                assert page["layouts"][now[value]]["text"] == plan.layout(name_of)[name_of]


@pytest.mark.parametrize("name", NAMES)
def test_memory_over_time_reaches_its_peak_and_never_more(name: str) -> None:
    page, steps = made(name)
    for step, plan in zip(page["steps"], steps, strict=True):
        memory = step["memory"]
        totals = [sum(each) for each in zip(*memory["series"].values(), strict=True)]
        assert max(totals) + memory["arguments"] + memory["results"] == plan.memory().bytes
        assert memory["times"] == sorted(memory["times"]) and memory["peak"] in memory["times"]


def test_a_loop_takes_as_much_of_the_time_as_one_of_its_trips_has_steps() -> None:
    page, steps = made("loops")
    for step, plan in zip(page["steps"], steps, strict=True):
        memory = step["memory"]
        loops = {text(page, name): (first, last) for name, first, last in memory["loops"]}
        assert {name.partition(":")[0] for name in loops} == {"scan#0 × 8", "cond#0", "while#0 (condition)"}
        within = [time for first, last in loops.values() for time in range(first, last + 1)]
        stored = dict(zip(memory["times"], memory["series"]["inside"], strict=True))
        assert {time for time, size in stored.items() if size} <= {*within}
        first, last = loops["scan#0 × 8"]
        in_scan = [size for time, size in stored.items() if first <= time <= last]
        assert len(in_scan) == last - first + 1 > 5 and len({*in_scan}) > 2
        running = [text(page, memory["running"][memory["times"].index(time)]) for time in range(first, last + 1)]
        assert running[0] == "the start of scan#0 × 8" and "dot_general in scan#0 × 8" in running
        assert max(in_scan) + memory["arguments"] <= plan.memory().bytes


def test_the_arrays_of_a_trip_are_stored_within_the_extent_of_their_loop() -> None:
    page, _ = made("loops")
    memory = page["steps"][-1]["memory"]
    loops = [(first, last) for _, first, last in memory["loops"]]
    inside = [(first, last) for _, kind, _, first, last, _ in memory["bars"] if kind == "inside"]
    assert inside
    assert all(any(start <= first <= last <= end for start, end in loops) for first, last in inside)


@pytest.mark.parametrize("name", NAMES)
def test_each_op_is_in_a_fold_and_reads_what_an_op_makes(name: str) -> None:
    page, steps = made(name)
    for step, plan in zip(page["steps"], steps, strict=True):
        program = page["programs"][step["program"]]
        folds = program["folds"]
        assert len(program["fold"]) == len(plan.arguments()) + len(plan.source.program.nodes) + len(plan.results())
        assert all(parent < fold for fold, parent in enumerate(folds["parent"]))
        assert all(0 <= fold < len(folds["kind"]) for fold in program["fold"])
        assert all(program["maker"][value] >= 0 for reads in program["reads"] for value in reads)


def test_a_program_is_written_once_and_again_only_where_a_law_rewrites_it() -> None:
    assert [step["program"] for step in made("a rewriting")[0]["steps"]] == [0, 0, 1, 1]
    assert len(made("a training step")[0]["programs"]) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_has_all_kernels_and_sends_what_the_plan_sends(name: str) -> None:
    page, steps = made(name)
    found, graph = page["steps"][-1]["graph"], steps[-1].lower("collective")
    for kind in ("argument", "kernel", "redistribute", "result"):
        count = sum(node["count"] for node in found["nodes"] if node["kind"] == kind)
        assert count == sum(each.kind == kind for each in graph.nodes)
    assert len(found["issue"]) == sum(each.kind in ("kernel", "redistribute") for each in graph.nodes)
    assert {end for source, target, *_ in found["edges"] for end in (source, target)} <= set(range(len(found["nodes"])))


def test_layers_that_are_alike_are_one_row_and_one_fold() -> None:
    page, _ = made("a training step")
    rows = page["steps"][-1]["sent"]
    gathers = [row for row in rows if row["kind"] == "all_gather" and text(page, row["value"]) == "params/blocks/*/w1"]
    assert [(row["direction"], len(row["members"])) for row in gathers] == [("forward", 3), ("backward", 3)]
    assert len(rows) < 40 and len(page["programs"][0]["folds"]["kind"]) < 120


def test_scopes_that_differ_by_a_number_are_one_fold() -> None:
    page, _ = made("named layers")
    folds = page["programs"][0]["folds"]
    outer = {fold: text(page, folds["text"][fold]) for fold, parent in enumerate(folds["parent"]) if parent == 0}
    assert set(outer.values()) == {"x", "w", "layer_* × 30", "result"}
    (alike,) = (fold for fold, name in outer.items() if name == "layer_* × 30")
    assert [text(page, folds["text"][fold]) for fold, parent in enumerate(folds["parent"]) if parent == alike] == [
        f"layer_{layer}" for layer in range(30)
    ]


def test_folds_follow_the_program_from_the_outside_in() -> None:
    page, _ = made("loops")
    folds = page["programs"][0]["folds"]

    def path(fold: int) -> str:
        outer = folds["parent"][fold]
        return (f"{path(outer)} / " if outer > 0 else "") + text(page, folds["text"][fold])

    found = {path(fold) for fold, kind in enumerate(folds["kind"]) if kind not in ("line", "program")}
    assert found == {
        "ws",
        "x",
        "least",
        "layers",
        "layers / scan#0 × 8",
        "layers / scan#0 × 8 / loops",
        "layers / scan#0 × 8 / loops / body",
        "layers / scan#0 × 8 / cond#0:0",
        "layers / scan#0 × 8 / cond#0:0 / loops",
        "layers / scan#0 × 8 / cond#0:0 / loops / body",
        "layers / scan#0 × 8 / cond#0:0 / loops / body / <lambda>",
        "layers / scan#0 × 8 / cond#0:1",
        "layers / scan#0 × 8 / cond#0:1 / loops",
        "layers / scan#0 × 8 / cond#0:1 / loops / body",
        "layers / scan#0 × 8 / cond#0:1 / loops / body / <lambda>",
        "layers / loops",
        "while#0 (condition)",
        "while#0 (condition) / loops",
        "while#0 (condition) / loops / <lambda>",
        "while#0 (body)",
        "while#0 (body) / loops",
        "while#0 (body) / loops / <lambda>",
        "loops",
        "result/0",
        "result/1",
    }


def test_a_layout_says_how_to_draw_each_dim() -> None:
    page, _ = made("rank 4")
    (found,) = (each for each in page["layouts"] if each["text"] == "f32[a*2, b*4, 6, c*8]")
    assert [(dim["extent"], dim["factors"]) for dim in found["dims"]] == [
        (4, [["a", 2, 2]]),
        (8, [["b", 2, 4]]),
        (6, []),
        (16, [["c", 2, 8]]),
    ]
    assert (found["local"], found["bytes"]) == ([2, 4, 6, 8], 1536)


def test_windows_and_pending_sums_and_padding_are_drawn_too() -> None:
    windows, steps = made("windows")
    assert steps[-1].layout("u1") == {"u1": "f32[win<64,66,1,1>(data) of 512]"}
    (held,) = (each["dims"][0]["windows"] for each in windows["layouts"] if each["text"] == steps[-1].layout("u1")["u1"])
    assert held[:2] == [[0, 65], [63, 129]] and held[7] == [447, 512]
    step, _ = made("a training step")
    assert {each["axis"] for layout in step["layouts"] for each in layout["pending"]} == {"data", "model"}
    padded, _ = made("names")
    assert {dim["padded"] for each in padded["layouts"] for dim in each["dims"] if "padded" in dim} == {32}


def test_a_conflict_has_its_claims_and_its_ways_out_with_their_costs() -> None:
    page, steps = made("a conflict")
    (found,) = page["steps"][-1]["open"]["conflicts"]
    conflict = steps[-1].conflicts[0]
    assert [text(page, claim) for claim, _ in found["claims"]] == list(conflict.claims)
    expected = [(way.tactic, way.bytes, way.flops, way.memory) for way in conflict.resolutions]
    assert [(text(page, way["tactic"]), way["bytes"], way["flops"], way["memory"]) for way in found["ways"]] == expected


@pytest.mark.parametrize("name", ["a conflict", "names", "loops"])
def test_the_same_plan_gives_the_same_page(name: str) -> None:
    assert html(planned(name)) == html(planned(name))
