"""An answer of a plan takes no more work than n log n: in devices, axes or leaves. Work is counted in calls of functions."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Any, ClassVar

import growing
import jax
import numpy as np
import pytest
from growing import calls
from jax import Array
from xdsl.ir import Operation

import partita as pt
from partita.compiler.advice import redundancy
from partita.compiler.cost import alike_ends, flops, memory
from partita.compiler.inputs.lines import Direction, SourceLines
from partita.compiler.plan.history import prefixes
from partita.compiler.report.memory_timeline import MOST_ROWS as MOST_ROWS_OF_MEMORY
from partita.compiler.report.problems import MOST_ROWS
from partita.dialects.definitions.flops import flops as flops_of_op
from partita.dialects.ground.errors import lines_of
from partita.rewrites.decide.price import Price, flops_as_placed
from partita.rewrites.program.program import Node, ValueId
from partita.rewrites.redistribute.kinds.halo import hops


@pytest.fixture(autouse=True)
def all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ops could run is tried in small programs too, so that all sizes do the same work."""
    monkeypatch.setattr(Price, "may_fall", True)


Programs = Callable[[int], Mapping[str, Callable[[], growing.Made]]]

FEW = 2_000
"""What takes no more calls does not matter, and depends on what was asked before."""
# Over four axes and fewer, searches try every step; growth is that of the other ones.
DEVICES, AXES, LEAVES, MANY = (64, 128, 256), (6, 9, 12), (100, 200, 400), (16, 32, 64)
SIZES: dict[str, Callable[[int], int]] = {
    "product of many dims": lambda axes: axes**2,  # of each dim and each axis
    "roll, one dim": lambda axes: 2**axes,  # the pairs of devices that exchange a row
}
"""What the work over some axes of size 2 is to grow with; where nothing is said, with their number."""


def check(
    programs: Programs,
    name: str,
    given: Sequence[int],
    folder: Path,
    size: Callable[[int], int] = int,
    steps: Callable[[int], int] = lambda count: 1,
) -> None:
    """The exponent of `n log n` that fits the work of each question, for the three sizes, is no more than 1.1.

    A page asks the same of the plan after each of its tactics, and conflicts at one op are resolved one after another: where
    there are so many steps, the work is that of one step.
    """
    work: dict[str, list[int]] = {}
    for count in given:
        for question, answer in growing.questions(programs(count)[name](), folder):
            # What an op computes is kept for all plans, so the work would depend on which tests were run before.
            flops_of_op.cache_clear()
            flops_as_placed.cache_clear()
            work.setdefault(question, []).append(calls(answer) // (steps(count) if question in ("html", "resolve") else 1))

    sizes = [*map(size, given)]

    def fit(counted: list[int]) -> float:
        return linear_regression([log(n * log(n)) for n in sizes], [log(max(each, 1)) for each in counted]).slope

    fits = {question: fit(counted) for question, counted in work.items()}
    assert {
        question: (slope, work[question]) for question, slope in fits.items() if slope > 1.1 and max(work[question]) > FEW
    } == {}


@pytest.mark.parametrize("name", growing.devices(4))
def test_work_grows_with_devices(name: str, tmp_path: Path) -> None:
    check(growing.devices, name, DEVICES, tmp_path)


@pytest.mark.parametrize("name", ["roll", "strided convolution", "matmuls"])
def test_work_grows_with_devices_of_two_axes(name: str, tmp_path: Path) -> None:
    check(lambda count: growing.devices(count, two=True), name, (16, 64, 256), tmp_path)


@pytest.mark.parametrize("name", growing.axes(3))
def test_work_grows_with_axes_of_two_devices(name: str, tmp_path: Path) -> None:
    check(growing.axes, name, AXES, tmp_path, SIZES.get(name, int), steps=lambda axes: axes + 1)


def test_work_grows_with_leaves(tmp_path: Path) -> None:
    check(growing.leaves, "Adam", LEAVES, tmp_path)


@pytest.mark.parametrize("name", growing.many(1))
def test_work_grows_with_what_a_program_has_many_of(name: str, tmp_path: Path) -> None:
    # The ways out of conflicts that touch are each decided in full, so fewer of them take as long.
    check(growing.many, name, [each // 2 for each in MANY] if "touch" in name else MANY, tmp_path)


class Scanned(tuple[ValueId, ...]):
    """A tuple that counts how often a value is looked for in it: that takes time with its length, in no call of a function."""

    looked: ClassVar[int] = 0

    def __contains__(self, value: object) -> bool:
        Scanned.looked += 1
        return super().__contains__(value)


def test_no_question_looks_for_each_value_among_all_arguments_or_results(tmp_path: Path) -> None:
    made = growing.leaves(100)["Adam"]()
    program = made[1].source.program
    program.arguments, program.returned = Scanned(program.arguments), Scanned(program.returned)
    for _, answer in growing.questions(made, tmp_path):
        answer()
    assert Scanned.looked < 10


def test_a_page_says_of_what_is_redundant_only_the_rows_that_it_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, plan, *_ = growing.leaves(1200)["Adam"]()
    said, make = list[str](), redundancy.Silent

    def noted(what: str, value: str, *rest: Any) -> redundancy.Silent:
        said.append(value)
        return make(what, value, *rest)

    monkeypatch.setattr(redundancy, "Silent", noted)
    plan.html(tmp_path / "plan.html")
    assert 0 < len(said) <= MOST_ROWS * len(prefixes(plan)) < len(plan.source.program.nodes)


def test_a_page_names_of_what_is_stored_only_the_rows_that_it_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, plan, *_ = growing.leaves(400)["Adam"]()
    said, make = list[str](), memory.Stored

    def noted(size: int, value: str, *rest: Any) -> memory.Stored:
        said.append(value)
        return make(size, value, *rest)

    monkeypatch.setattr(memory, "Stored", noted)
    plan.html(tmp_path / "plan.html")
    # No two leaves are alike here.
    assert 0 < len(said) <= MOST_ROWS_OF_MEMORY * len(prefixes(plan)) < len(plan.source.program.arguments)


def test_arguments_and_results_that_are_alike_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, boundary = list[ValueId](), alike_ends.boundary
    monkeypatch.setattr(alike_ends, "boundary", lambda placements, value: asked.append(value) or boundary(placements, value))  # pyright: ignore

    def work(count: int) -> int:
        asked.clear()
        _, plan, *_ = growing.leaves(count)["Adam"]()
        plan.silent()
        plan.memory()
        return len(asked)

    assert work(40) == work(200) > 0


def test_ops_that_are_alike_are_asked_once_what_they_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Node]()
    flops_of = flops.known_flops
    monkeypatch.setattr(flops, "known_flops", lambda *given: asked.append(given[0]) or flops_of(*given))  # pyright: ignore

    def work(count: int) -> int:
        asked.clear()
        _, plan, *_ = growing.leaves(count)["Adam"]()
        plan.silent()
        plan.flops_per_device()
        return len(asked)

    assert work(40) == work(200) > 0


def test_memory_looks_up_no_names_before_they_are_shown() -> None:
    _, plan, *_ = growing.leaves(40)["Adam"]()
    memory = plan.memory()
    assert memory.bytes > 0 and "names" not in vars(plan.source.addresses)
    assert "params/w0" in [each.value for each in memory.arrays]


def test_the_walk_to_a_gradient_asks_an_op_once_which_way_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    _, plan, *_ = growing.axes(3)["training step"]()
    asked, direction = Counter[Operation](), SourceLines.direction

    def noted(sources: SourceLines, op: Operation) -> Direction:
        asked[op] += 1
        return direction(sources, op)

    monkeypatch.setattr(SourceLines, "direction", noted)
    assert plan.source.addresses.gradients
    assert max(asked.values()) == 1


def doubled(tree: dict[str, Array]) -> dict[str, Array]:
    return {name: leaf * 2 for name, leaf in tree.items()}


def test_successors_are_found_in_work_that_grows_with_leaves() -> None:
    """Where the result is one tree, each of its leaves may be what the next call takes."""

    def work(count: int) -> int:
        tree = {f"w{number}": np.ones(8, np.float32) for number in range(count)}
        plan = pt.plan(doubled, pt.Mesh(data=4), tree)
        return calls(lambda: plan.successors)

    first, second = work(100), work(200)
    assert second < 2.5 * first


def test_a_plan_file_is_split_into_lines_once(tmp_path: Path) -> None:
    _, plan, function, args = growing.leaves(40)["Adam"]()
    plan.save(file := tmp_path / "plan.partita")
    before = lines_of.cache_info().misses
    assert pt.replay(function, file, *args).trace == plan.trace
    assert lines_of.cache_info().misses == before + 1


def test_a_renamed_tree_is_compared_in_time_that_grows_with_its_leaves(tmp_path: Path) -> None:
    def work(count: int) -> int:
        _, plan, function, args = growing.leaves(count)["Adam"]()
        plan.save(file := tmp_path / "plan.partita")
        renamed = tuple({f"v{number}_": leaf for number, leaf in enumerate(tree.values())} for tree in args)
        with pytest.warns(pt.ReplayWarning, match="the program has changed"):
            return calls(lambda: pt.replay(function, file, *renamed))

    small, large = work(100), work(400)
    assert large < 1.2 * small * 4 * log(400) / log(100)


def test_constraints_that_meet_are_reconciled_in_time_that_grows_with_their_number() -> None:
    def work(count: int) -> int:
        def function(a: jax.Array, b: jax.Array) -> list[jax.Array]:
            return [pt.constrain(a * k, "a, _") + pt.constrain(b * k, "_, a") for k in range(count)]

        array = jax.ShapeDtypeStruct((16, 16), "float32")
        plan = pt.plan(function, pt.Mesh(a=8), array, array)
        return calls(lambda: plan.apply(pt.Annotated()))

    work(1)
    small, large = work(50), work(200)
    assert large < 1.2 * small * 4 * log(200) / log(50)


def test_on_thousands_of_devices_a_window_asks_only_its_neighbours() -> None:
    mesh = pt.Mesh(a=4096)
    plan = pt.plan(growing.rolled, mesh, jax.ShapeDtypeStruct((4 * 4096, 2), "float32")).tile("x", 0, "a")
    hops.cache_clear()
    assert calls(plan.counts) < 1_000 * 4096
    assert plan.counts()["permute"] == 1
    assert plan.bytes_per_device() == 2 * 4
