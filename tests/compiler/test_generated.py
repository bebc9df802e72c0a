"""Generated programs under random tactics: partitioned, they compute what JAX and the interpreter compute unpartitioned.

`make test` tries the same examples everywhere; `make fuzz` (`--hypothesis-profile=fuzz`) goes looking for new ones.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable
from typing import Any

import hypothesis
import jax
import pytest
from agreement import disagreement
from figures import Figures
from generated import Case, cases, examples
from hypothesis import given
from jaxpr_collectives import collectives, counts, received
from lowered import interpreted, lowered_text

from partita.dialects.interpret import interpret

# Compiling dominates: what needs no compiler can be tried more often.
COMPILED, INTERPRETED, LOWERED = 30, 60, 60


def try_all(number: int, grad: bool, check: Callable[[Case], None]) -> list[bool]:
    """Tries `check` on as many cases; of each that was tried whether it communicates."""
    seen: list[bool] = []

    @examples(number)
    @given(cases(grad))
    def run(case: Case) -> None:
        hypothesis.note(f"{case.plan.trace}\n{case.start.source.traced.module}")
        check(case)
        seen.append(case.communicates)

    run()
    return seen


@pytest.mark.parametrize("grad", [False, True], ids=["forward", "gradients"])
def test_a_partitioned_program_equals_the_unpartitioned(grad: bool, figures: Figures) -> None:
    seen = try_all(COMPILED, grad, equals_unpartitioned)
    figures.add("generated programs with a collective, compiled", sum(seen), of=len(seen))
    assert 2 * sum(seen) >= len(seen)


def equals_unpartitioned(case: Case) -> None:
    args = case.program.arrays()
    expected: list[Any] = jax.tree.leaves(jax.jit(case.program.function)(*args))
    assert disagreement(interpret(case.start.source.traced.module, args), expected) == ""
    compiled = case.plan.compile()
    assert disagreement(jax.tree.leaves(compiled(*args)), expected) == ""
    executed = collectives(compiled, *args)
    assert counts(executed) == case.plan.counts()
    assert received(executed) == case.plan.bytes_per_device()


@pytest.mark.parametrize("grad", [False, True], ids=["forward", "gradients"])
def test_every_form_of_a_plan_means_the_program(grad: bool, figures: Figures) -> None:
    seen = try_all(INTERPRETED, grad, means_the_program)
    figures.add("generated programs with a collective, interpreted", sum(seen), of=len(seen))
    assert 2 * sum(seen) >= len(seen)


def means_the_program(case: Case) -> None:
    args = case.program.arrays()
    expected = interpret(case.start.source.traced.module, args)
    assert disagreement(interpret(case.plan.ir(fused=False), args), expected) == ""
    assert disagreement(interpret(case.plan.ir(), args), expected) == ""
    assert disagreement(interpreted(case.plan, args), expected) == ""


@pytest.mark.parametrize("grad", [False, True], ids=["forward", "gradients"])
def test_lowering_the_unfused_text_of_a_generated_plan_gives_its_spmd(grad: bool) -> None:
    assert try_all(LOWERED, grad, has_one_source)


def has_one_source(case: Case) -> None:
    assert lowered_text(case.plan) == str(case.plan.spmd())
