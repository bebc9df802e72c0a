"""A plan's memory has the order of what XLA allocates, and says by value and source line where it is."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false

import gc
import re
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import pytest
from example_plans import Made, examples
from ten_plans import transformer

import partita as pt
from partita.compiler.cost.alike_ends import bytes_of_arguments
from partita.dialects.ground.amounts import of_bytes
from partita.examples import gpt
from partita.rewrites.decide.live_ranges import live_ranges


@cache
def made(name: str) -> Made:
    return examples()[name]()


@pytest.mark.parametrize(
    "name", ["demo, ZeRO-3", "lstm, units", "experts, experts", "decode, multi-head", "block.partita, zero3"]
)
def test_arguments_and_results_take_what_xla_allocates(name: str) -> None:
    plan, args = made(name)
    memory, compiled = plan.memory(), plan.compile()
    found: Any = compiled.lower(*args).compile().memory_analysis()
    assert memory.arguments == found.argument_size_in_bytes
    # XLA has a table of the addresses of several results.
    assert memory.results == found.output_size_in_bytes - (8 * len(plan.results()) if len(plan.results()) > 1 else 0)


def allocated(plan: pt.Plan, args: Any) -> int:
    found: Any = plan.compile().lower(*args).compile().memory_analysis()
    return found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes


def test_ten_plans_of_one_model_have_the_order_of_what_xla_allocates() -> None:
    # Its import takes seconds, and every worker imports every file of tests.
    from scipy.stats import kendalltau

    made = [make() for make in transformer(gpt.Config(length=32, layers=1, width=64)).ten().values()]
    assert len(made) == 10
    ours, theirs = [plan.memory().bytes for plan, _ in made], [allocated(*each) for each in made]
    assert kendalltau(ours, theirs).statistic >= 0.8, (ours, theirs)


def test_results_take_the_buffers_of_donated_arguments() -> None:
    plan, args = made("demo, ZeRO-3")
    memory, kept = plan.memory(donate=["params", "opt"]), plan.memory()
    found: Any = plan.compile(donate=["params", "opt"]).lower(*args).compile().memory_analysis()
    assert memory.donated == found.alias_size_in_bytes
    assert kept.bytes - memory.bytes == memory.donated > 0


def test_the_memory_of_a_jitted_function_counts_what_it_donates() -> None:
    plan, args = made("demo, ZeRO-3")
    tactics: Any = [action.redo for action in plan.actions]
    step = pt.jit(plan.source.traced.function.fn, mesh=plan.mesh, tactics=tactics, donate_argnames=("params", "opt"))
    donating = step.plan(*args)
    assert donating.memory() == plan.memory(donate=["params", "opt"]) == donating.memory(donate="params")
    assert f"less {of_bytes(donating.memory().donated)} donated" in str(donating)
    # So does all else that asks for the peak.
    for bytes, allowed in ((donating.memory().bytes, True), (donating.memory().bytes - 1, False)):
        with nullcontext() if allowed else pytest.raises(pt.Error, match="memory"):
            donating.expect(memory=bytes)


def test_a_result_takes_a_buffer_of_its_own_layout_only() -> None:
    x = np.ones((8, 4), np.float32)
    plan = pt.plan(lambda x: x.T.reshape(8, 4), pt.Mesh(data=8), x)
    assert plan.memory(donate="x").donated == x.nbytes
    assert plan.tile("x", 0, "data").replicate("result", "data").memory(donate="x").donated == 0


def test_an_argument_that_cannot_be_donated_is_an_error() -> None:
    plan, _ = made("scanned layers, plain")
    with pytest.raises(pt.Error, match="no argument"):
        plan.memory(donate="parms")


def test_the_arrays_at_the_peak_are_listed_with_value_and_line() -> None:
    memory = made("demo, ZeRO-3")[0].memory()
    temporaries = [each for each in memory.arrays if each.kind == "temporary"]
    assert sum(each.bytes for each in temporaries) == memory.temporaries
    assert [each.bytes for each in memory.arrays] == sorted((each.bytes for each in memory.arrays), reverse=True)
    text = str(memory)
    assert len(text.splitlines()) <= 15
    # Other versions of JAX number the additions otherwise.
    assert re.search(r"temporary add#\d+ at gpt.py:79 in block", text)


def test_a_diff_and_the_ways_out_of_a_conflict_have_the_peak() -> None:
    x = np.ones((64, 64), np.float32)
    plan = pt.plan(lambda x: x @ x.T, pt.Mesh(data=8), x)
    tiled = plan.tile("x", 0, "data")
    assert tiled.diff(plan).memory == (plan.memory().bytes, tiled.memory().bytes)
    for way in tiled.conflicts[0].resolutions:
        assert way.memory == tiled.apply(way).memory().bytes
        assert f"stores {of_bytes(way.memory)}" in repr(way)


def test_what_the_memory_is_estimated_from_is_freed_without_the_collector() -> None:
    plan = made("demo, ZeRO-3")[0]
    # What is kept of a program and of a plan is made before.
    plan.memory()
    gc.collect(0)
    gc.disable()
    try:
        live_ranges(plan.decisions, bytes_of_arguments(plan))
        assert gc.collect(0) == 0
    finally:
        gc.enable()
