"""The programs in `examples`: every plan has the collectives of its comment, and computes the same."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from root import ROOT

import partita as pt
from partita.compiler.cli.main import main
from partita.compiler.run.trial_run import errors, input_leaves

EXAMPLES = ROOT / "examples"
COUNTS: dict[tuple[str, str], dict[str, int]] = {
    ("mlp", "zero3"): {"all_gather": 2, "all_reduce": 1},
    ("attention", "batch"): {},
    ("attention", "heads"): {"all_reduce": 1},
    ("block", "batch"): {},
    ("block", "megatron"): {"all_reduce": 2},
    ("block", "zero3"): {"all_gather": 8},
    ("embedding", "vocabulary"): {"all_reduce": 5},
}


@pytest.mark.parametrize(("name", "plan"), COUNTS, ids=":".join)
def test_an_example_computes_the_same_by_every_plan(name: str, plan: str):
    made = pt.load(EXAMPLES / f"{name}.partita").plan(plan)
    assert {kind: count for kind, count in made.counts().items() if count} == COUNTS[name, plan]
    assert not made.conflicts
    assert max(errors(made, input_leaves(made, (), seed=0)).values()) <= 1e-3


def test_every_plan_of_the_examples_is_tried():
    plans = {(path.stem, plan) for path in EXAMPLES.glob("*.partita") for plan in pt.load(path).plans}
    assert plans == set(COUNTS)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.partita")), ids=lambda path: path.stem)
def test_an_example_is_shown(path: Path):
    result = CliRunner().invoke(main, ["show", str(path)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "on data=4, model=2" in result.output
