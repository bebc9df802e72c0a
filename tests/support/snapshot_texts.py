"""What a snapshot says of a plan and of a wrong program, and the programs that it is made of."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import growing
import pytest
import report_plans
from example_plans import examples
from generated import Case
from generated_seeded import seeded
from root import ROOT
from snapshot_files import NAMES
from ten_plans import transformer
from wrong_programs import IN_NOTATION, PROGRAMS, answer, answer_in_notation

import partita as pt
from partita.compiler.answers.plan_text import text_of_plan
from partita.compiler.api.plan import Plan
from partita.compiler.cost.costs import price
from partita.examples import demo
from partita.rewrites.program.program import ValueId

GENERATED = 500
SOME = 3
"""Of how many values, collectives, conflicts and stops a snapshot has the explanation."""
Text = Callable[[], str]


def write_all(folder: Path, kinds: Sequence[str], number: int | None, part: int, parts: int) -> None:
    """Writes a file for each program, or for at most so many of each kind, or for one of several parts of them."""
    for kind in kinds:
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for name, text in islice(TEXTS[kind]().items(), part, number, parts):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (folder / kind / f"{file_name(name)}.txt").write_text(without_places(answered(text)))
        print(f"{kind} written", file=sys.stderr, flush=True)


def file_name(name: str) -> str:
    return re.sub(r"[^\w.+-]+", "_", name)


def without_places(text: str) -> str:
    """The text without machine paths, and without the numbers of lines in the files of the tests, which move."""
    text = text.replace(f"{ROOT}/", "")
    return re.sub(rf"\b({'|'.join(FILES_OF_TESTS)})\.py:\d+(:\d+)?", r"\1.py:_", text)


FILES_OF_TESTS = sorted(path.stem for path in (ROOT / "tests" / "support").glob("*.py"))


def example_texts() -> dict[str, Text]:
    """The plans of the examples, ZeRO in all stages, those that a page has to show, and those that tests of growth ask."""
    stages = {f"demo, {name}": make for name, make in transformer(demo.CONFIG).ten().items() if name.endswith(("-1", "-2"))}
    # A larger size of a model has the same texts, with other numbers.
    chosen = {name: make for name, make in examples().items() if not name.startswith("larger")} | stages
    made: dict[str, Callable[[], Plan]] = {name: lambda make=make: make()[0] for name, make in chosen.items()}
    made |= {f"page, {name}": make for name, make in report_plans.PLANS.items()}
    grown = {**growing.devices(8), **{f"{name}, 2": make for name, make in growing.devices(4, two=True).items()}}
    grown |= {**growing.axes(3), **growing.leaves(16), **growing.many(3)}
    made |= {f"growing, {name}": lambda make=make: make()[1] for name, make in grown.items()}
    return {name: partial(of_program, make) for name, make in made.items()}


def of_program(make: Callable[[], Plan]) -> str:
    return of_plan(make())


def generated_texts() -> dict[str, Text]:
    return {f"{seed:03}": partial(of_case, seed) for seed in range(GENERATED)}


def of_case(seed: int) -> str:
    """The program, its mesh and its tactics as data, those that are refused and why, and the plan."""
    case: Case = seeded(seed)
    plan, refused = case.start, list[str]()
    for number, tactic in enumerate(case.tactics):
        try:
            plan = tactic.applied(plan)
        except pt.Error as error:
            refused.append(f"{number}: {error}")
    drawn = [repr(case.program), repr(case.mesh), *map(repr, case.tactics)]
    return sectioned({"drawn": "\n".join(drawn), "refused": "\n".join(refused)}) + of_plan(plan)


def error_texts() -> dict[str, Text]:
    """The errors that the wrong programs of the gallery give."""
    told = {path.stem: partial(answered, partial(answer, path)) for path in PROGRAMS}
    return told | {f"notation, {path.stem}": partial(answered, partial(answer_in_notation, path)) for path in IN_NOTATION}


def of_plan(plan: Plan) -> str:
    """All that a plan says, by question; a question that raises an error has its text."""
    return sectioned({title: answered(ask) for title, ask in questions(plan)}) + NAMES + names(plan)


def sectioned(texts: dict[str, str]) -> str:
    return "".join(f"== {title}\n{text}\n" for title, text in texts.items())


def names(plan: Plan) -> str:
    return "".join(f"{value} {name}\n" for value, name in named(plan))


def named(plan: Plan) -> list[tuple[ValueId, str]]:
    """All values of the program, by number."""
    return sorted(plan.source.addresses.names.items())


def answered(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    # Whatever it raises is compared like an answer; what pytest raises is no `Exception`.
    except (Exception, pytest.fail.Exception) as error:
        return f"raises {type(error).__name__}: {error}"


def questions(plan: Plan) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is asked of a plan."""
    yield "mesh", lambda: plan.mesh
    yield "trace", lambda: plan.trace
    yield "layouts", lambda: lines([f"{name}: {plan.layout_text(value)}" for value, name in named(plan)])
    yield "counts", plan.counts
    yield "bytes", plan.bytes_per_device
    yield "flops", plan.flops_per_device
    yield "seconds", lambda: f"{price(plan).seconds:.9g}"
    yield "memory", lambda: plan.memory().all()
    yield "collectives", lambda: lines(plan.collectives())
    yield "collectives as a table", plan.collectives
    yield "conflicts", lambda: plan.conflicts.all()
    yield "blocked", lambda: plan.blocked.all()
    yield "whole", lambda: plan.whole.all()
    yield "annotations", lambda: lines(plan.annotations)
    yield "silent", plan.silent
    yield "ranges", lambda: plan.ranges().all()
    yield "summary", lambda: plan
    yield "saved", lambda: text_of_plan(plan)
    yield from explanations(plan)
    yield "ir", plan.ir
    yield "ir, unfused", lambda: plan.ir(fused=False)
    yield "spmd", plan.spmd
    yield "graph", lambda: plan.lower("collective").text()


def explanations(plan: Plan) -> Iterator[tuple[str, Callable[[], object]]]:
    inside = [name for name in plan.source.addresses.by_op if not name.startswith("constant")]
    for name in [*plan.arguments()[:SOME], *plan.results()[:SOME], *inside[:: max(1, len(inside) // SOME)][:SOME]]:
        yield f"explain {name}", partial(plan.explain, name)
    for kind, listing in (("collective", plan.collectives()), ("conflict", plan.conflicts), ("stop", plan.blocked)):
        for number, each in enumerate(listing[:SOME]):
            yield f"explain {kind} {number}", partial(plan.explain, each)


def lines(rows: Sequence[Any]) -> str:
    return "\n".join(map(str, rows))


TEXTS: dict[str, Callable[[], dict[str, Text]]] = {
    "examples": example_texts,
    "generated": generated_texts,
    "errors": error_texts,
}
