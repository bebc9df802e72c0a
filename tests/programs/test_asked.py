"""Plans of generated programs and of the examples are asked everything: nothing raises, and each cure does what it says.

`make test` asks a few of each kind; `make fuzz` (`--hypothesis-profile=fuzz`) asks 2,000 generated plans, and all examples.
"""

from contextlib import nullcontext
from pathlib import Path

import hypothesis
import jax
import pytest
from asked import asked
from example_plans import annotated_mesh, examples as example_plans
from generated import Case, cases, examples, is_quick
from hypothesis import given as drawing

# How many plans are asked: in `make test`, and in `make fuzz`.
GENERATED = {"forward": (8, 1300), "gradients": (3, 700)}
# How many of a hundred generated plans are compiled too.
COMPILED = 3
# The examples that are asked: in `make test`, and in `make fuzz`.
QUICK = "mlp, batch and units", "heat, rows", "block.partita, annotated"
NAMES = QUICK if is_quick() else [*example_plans()]


@pytest.mark.parametrize("kind", GENERATED)
def test_a_generated_plan_answers_everything(kind: str, tmp_path: Path) -> None:
    @examples(*GENERATED[kind])
    @drawing(cases(kind == "gradients"))
    def run(case: Case) -> None:
        hypothesis.note(f"{case.plan.trace}\n{case.start.source.traced.module}")
        asked(case.plan, case.program.function, case.program.arrays(), tmp_path, runs=case.share < COMPILED)

    run()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_answers_everything(name: str, tmp_path: Path) -> None:
    plan, args = example_plans()[name]()
    # The constraints of this program name the axes of JAX's mesh, so it is traced again only where there is one.
    with jax.set_mesh(annotated_mesh()) if name == "annotated demo" else nullcontext():
        asked(plan, plan.source.traced.function.fn, args, tmp_path)
