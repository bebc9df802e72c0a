"""Generated programs under random tactics, with ops and arguments on random device sets: graphs compute what JAX does.

In every second program transfers start at once, so that what small arrays are made of is made again on other sets.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Iterator

import hypothesis
import jax
import pytest
from generated import POOLS, Program, examples, programs
from generated_tactics import Tactic, tactics
from hypothesis import given as drawing, strategies as st
from lowered import reparsed
from tolerance import differs

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.cost.counts import count_collectives
from partita.compiler.cost.device_sets import made_again
from partita.compiler.graph.graph import Graph
from partita.compiler.plan import lowering
from partita.rewrites.decide import price
from partita.rewrites.lower.materialise import materialise
from partita.rewrites.lower.to_flow import cut_at, to_flow
from partita.rewrites.plan_text import stages

HOW = ("whole", "collective")

MESHES: list[dict[str, int]] = [
    {"stage": 2, "a": 2, "b": 2},
    {"a": 2, "stage": 2, "b": 2},
    {"a": 4, "stage": 2},
    {"stage": 3, "a": 2},
    {"stage": 4, "a": 2},
    {"stage": 2},
]
Claim = tuple[int, int, int]
"""A value, a coordinate, and after how many tactics it is claimed. A case claims several sets, so that something crosses."""
Drawn = tuple[dict[str, int], Program, list[Tactic], list[Claim]]


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    program = draw(programs(draw(st.booleans()), draw(st.sampled_from(POOLS))))
    placed = [Tactic(each.kind, each.value, each.dim, each.axis) for each in draw(st.lists(tactics, min_size=2, max_size=8))]
    values = draw(st.lists(st.integers(0, 1 << 10), min_size=2, max_size=5, unique=True))
    claims = [(value, at, draw(st.integers(0, 20))) for at, value in enumerate(values, draw(st.integers(0, 3)))]
    return draw(st.sampled_from(MESHES)), program, placed, claims


def planned(case: Drawn) -> Plan:
    mesh, program, placed, claims = case
    every: list[Tactic | Claim] = [*placed]
    for claim in claims:
        every.insert(claim[2] % (len(every) + 1), claim)
    plan = pt.plan(program.function, pt.Mesh(**mesh), *program.arrays())
    for each in every:
        if isinstance(each, Tactic):
            plan = each.apply(plan)
            continue
        names = [*plan.source.addresses.by_op, *plan.arguments(), *plan.results()]
        try:
            plan = plan.on(names[each[0] % len(names)], stage=each[1] % mesh["stage"])
            # So a later claim may take over what is decided here.
            assert each[2] % 2 or plan.decisions
        except pt.Error as error:
            assert error.title
    return plan


def texts(plan: Plan, how: str, graph: Graph) -> Iterator[bool]:
    """Whether each form of a plan as text leads to the same graph."""
    yield Graph.parse(graph.text()).text() == graph.text()
    if not plan.source.traced.foreign and not plan.whole:
        yield str(to_flow(reparsed(str(plan.ir())), how)) == str(graph.module)
        decided = str(lowering.decisions(plan))
        yield str(stages.decided(reparsed(str(lowering.claims(plan))))) == decided
        yield str(materialise(stages.decisions_of(reparsed(decided)), cut_at(how))) == str(graph.module)


def said(plan: Plan, graph: Graph) -> dict[tuple[str, str], int]:
    """The bytes that cross, as the plan says: those of all devices of a set, by the names of both sets."""
    found, size = dict[tuple[str, str], int](), next(iter(graph.sets.values())).size
    for each in plan.transfers():
        ends = each.source.replace("=", ""), each.target.replace("=", "")
        found[ends] = found.get(ends, 0) + each.bytes * size
    return found


def test_generated_programs_on_several_sets_mean_what_they_mean() -> None:
    seen, start = dict[str, int](programs=0, crossing=0, again=0), price.START

    @examples(60)
    @drawing(drawn())
    def run(case: Drawn) -> None:
        program, seen["programs"] = case[1], seen["programs"] + 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(price, "START", start * (seen["programs"] % 2))
            check(planned(case), program)

    def check(plan: Plan, program: Program) -> None:
        hypothesis.note(f"{plan.trace}\n{plan.source.traced.module}")
        if plan.table.sets is None:
            return
        graph = plan.lower(how := HOW[seen["programs"] // 2 % 2])
        seen["crossing"] += bool(graph.transferred())
        seen["again"] += bool(made_again(plan))
        expected = jax.tree.leaves(jax.jit(program.function)(*program.arrays()))
        assert differs(jax.tree.leaves(graph.run(*program.arrays())), expected, program) == ""
        assert all(texts(plan, how, graph))
        assert (said(plan, graph), plan.bytes_per_device()) == (graph.transferred(), graph.bytes_per_device())
        assert graph.counts() == plan.counts() == count_collectives(plan.collectives(), ())

    run()
    assert 3 * seen["crossing"] >= seen["programs"]
    assert seen["again"] > 0
