"""Generated programs under random tactics: partitioned, they compute what JAX and the interpreter compute unpartitioned.

`make test` tries the same programs everywhere; `make fuzz` (`--hypothesis-profile=fuzz`) draws ten times as many new
ones. Each is checked on all devices in lockstep; a share also by the text of its lowering, and a share on real devices. In
every second program collectives start at once, so that ops of small arrays run elsewhere than their tactics say.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections import Counter
from typing import Any

import hypothesis
import jax
import numpy as np
import pytest
from figures import Figures
from generated import Case, cases, examples
from hypothesis import given as drawing
from jaxpr_collectives import KINDS, collectives, counts, in_branches, received
from lowered import executions, interpreted, lowers_from_its_text
from tolerance import differs

from partita.compiler.api.plan import Plan
from partita.dialects.reference.interpret import interpret
from partita.rewrites.decide import price

# A gradient is three times as long as its program.
PROGRAMS = {"forward": 130, "gradients": 70}
# How many of a hundred programs are compiled for devices, and how many are lowered from their text.
COMPILED, LOWERED = 15, 30


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_partitioned_program_means_what_it_means_unpartitioned(kind: str, figures: Figures) -> None:
    start = price.START
    seen: Counter[str] = Counter()
    indices: dict[tuple[str, int, int], bool] = {}

    @examples(PROGRAMS[kind])
    @drawing(cases(kind == "gradients"))
    def run(case: Case) -> None:
        hypothesis.note(f"{case.plan.trace}\n{case.start.source.traced.module}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(price, "START", start * (case.share % 2))
            check(case)
        elsewhere = case.plan.decisions.placements.elsewhere
        for at, placed in tilings(case.plan):
            indices[at] = indices.get(at, False) or placed
        seen.update(programs=1, communicate=case.communicates, compiled=is_compiled(case), elsewhere=bool(elsewhere))

    run()
    figures.add("generated programs with a collective", seen["communicate"], of=seen["programs"])
    figures.add("generated programs run on eight devices", seen["compiled"], of=seen["programs"])
    figures.add("generated programs with ops that run along a stored dim", seen["elsewhere"], of=seen["programs"])
    figures.add("derived tilings of generated programs executed", sum(indices.values()), of=len(indices))
    assert 3 * seen["communicate"] >= seen["programs"]


def tilings(plan: Plan) -> list[tuple[tuple[str, int, int], bool]]:
    """Each index of each op, by the op's name and its number of indices, and whether an axis is placed on it."""
    found: list[tuple[tuple[str, int, int], bool]] = []
    for node in plan.source.program.nodes:
        claims = [table.nodes[node.number] for table in plan.table.axes.values()]
        placed = {claim.at for claim in claims if claim is not None}
        count = len(node.signature.instance.indices)
        found += [((node.op_name, count, at), at in placed) for at in range(count)]
    return found


def is_compiled(case: Case) -> bool:
    """Programs that the interpreter cannot run, because they lack definitions, run on real devices."""
    return case.share < COMPILED or bool(case.start.whole)


def check(case: Case) -> None:
    args, program = case.program.arrays(), case.program
    expected: list[Any] = jax.tree.leaves(jax.jit(program.function)(*args))
    placed = dict(case.start.table.axes)
    plan = case.plan
    assert case.start.table.axes == placed == {}
    always, branches = executions(plan.spmd())
    assert always == plan.counts()
    assert branches == total(plan.counts().branches)
    if not case.start.whole:
        # Arrays that a program closes over are its last arguments.
        given = (*args, *map(np.asarray, case.start.source.traced.consts))
        whole = interpret(case.start.source.traced.module, given)
        assert differs(whole, expected, program) == ""
        assert differs(interpreted(plan, given), whole, program) == ""
        if case.share % 3 == 0:
            assert differs(interpret(plan.ir(fused=False), given), whole, program) == ""
    if 100 - case.share <= LOWERED:
        lowers_from_its_text(plan)
    if is_compiled(case):
        runs_on_devices(case, args, expected)


def total(branches: dict[str, dict[str, int]]) -> dict[str, int]:
    """The collectives of all branches together."""
    return {kind: sum(row.get(kind, 0) for row in branches.values()) for kind in KINDS.values()}


def runs_on_devices(case: Case, args: tuple[Any, ...], expected: list[Any]) -> None:
    compiled = case.plan.compile()
    assert differs(jax.tree.leaves(compiled(*args)), expected, case.program) == ""
    executed = collectives(compiled, *args)
    assert counts(executed) == case.plan.counts()
    assert in_branches(executed) == total(case.plan.counts().branches)
    assert received(executed) == case.plan.bytes_per_device()
