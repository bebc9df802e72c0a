"""The fixture `plan_file` in a user's project: a plan beside its file, failures that say what to do, and their renewal."""

import re
import tomllib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import jax
import pytest
from root import ROOT

import partita as pt
from partita.compiler.testing import plan_files, plugin

pytest_plugins = ["pytester"]

MODEL = """
import jax
import jax.numpy as jnp
import partita as pt

LAYERS = 2


def loss(params, x):
    for layer in params["blocks"]:
        x = jax.nn.relu(x @ layer["w1"]) @ layer["w2"]
    return jnp.mean(x**2)


def train_step(params, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def plan(*more):
    block = {"w1": jax.ShapeDtypeStruct((16, 32), "float32"), "w2": jax.ShapeDtypeStruct((32, 16), "float32")}
    x = jax.ShapeDtypeStruct((64, 16), "float32")
    made = pt.plan(train_step, pt.Mesh(data=4, model=2), {"blocks": [block] * LAYERS}, x)
    return made.apply(pt.DataParallel("data", "x"), pt.Megatron("model", column="**/w1"), *more)
"""
TEST = """
import model

def test_the_plan(plan_file):
    plan_file(model.plan())
"""
SAVED = """\
mesh data=4, model=2

plan train_step {
  DataParallel(axis='data', inputs='x')
    => x: 5 all_reduce
  Megatron(axis='model', column='**/w1')
    => params/blocks/*/w1 x 2, result/0/blocks/*/w1 x 2: 3 all_reduce
  layout params/blocks/*/w1 x 2: f32[16, model*16]
  layout params/blocks/*/w2 x 2: f32[model*16, 16]
  layout x: f32[data*16, 16]
  layout result/0/blocks/*/w1 x 2: f32[16, model*16]
  layout result/0/blocks/*/w2 x 2: f32[model*16, 16]
  layout result/1: f32[]
}
"""

Run = Callable[..., str]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs the tests of a project whose model is as above, with some of it replaced, and says what pytest prints."""
    assert plan_files.MOST_COLLECTIVES  # What this process has imported, pytest's own runs in it share.
    plugin = () if entry_points(group="pytest11", name="partita") else ("-p", "partita.compiler.testing.plugin")

    def run(*options: str, model: tuple[str, str] = ("", ""), test: str = TEST) -> str:
        pytester.makepyfile(model=MODEL.replace(*model) if model[0] else MODEL, test_plan=test)
        return pytester.runpytest_inprocess(*plugin, *options, "-p", "no:cacheprovider").stdout.str()

    return run


def said(output: str) -> str:
    """The failure, without pytest's own lines."""
    lines = output.splitlines()
    return "\n".join(lines[next(n for n, line in enumerate(lines) if line.startswith("error:")) :]).partition("\n====")[0]


def test_pytest_finds_the_plugin_of_an_installed_partita() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"partita": plugin.__name__}
    imported = [line for line in Path(str(plugin.__file__)).read_text().splitlines() if re.match(r"(from|import) ", line)]
    assert imported == [
        "from __future__ import annotations",
        "from collections.abc import Callable",
        "from pathlib import Path",
        "from typing import TYPE_CHECKING",
        "import pytest",
    ]


def test_without_a_file_it_says_how_to_write_one(run: Run, pytester: pytest.Pytester) -> None:
    assert "there is no plan file `plan.partita`" in (output := run())
    assert "help: write it: pytest --update-plans" in output
    assert not (pytester.path / "plan.partita").exists()


def test_the_file_is_written_once_and_then_compared(run: Run, pytester: pytest.Pytester) -> None:
    assert "1 passed" in run("--update-plans")
    assert (pytester.path / "plan.partita").read_text() == SAVED
    assert "1 passed" in run()


def test_another_tactic_is_shown_with_its_collectives(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "plan.partita").write_text(SAVED)
    output = run(test=TEST.replace("model.plan()", "model.plan(model.pt.ZeRO(3, 'data', params='params/blocks/0'))"))
    assert said(output) == (
        "error: the plan of train_step is not that of `plan.partita`: "
        "0 --> 3 all_gather, 8 --> 6 all_reduce, 0 --> 2 reduce_scatter\n"
        "note: its tactics are not those of the file:\n"
        "      + ZeRO(stage=3, axis='data', params='params/blocks/0')\n"
        "note: new: all_gather of `params/blocks/0/w1` (forward) over data: 768 bytes, needed by `dot_general` at model.py:10 "
        "in loss (jvp()), because of 3: ZeRO(stage=3, axis='data', params='params/blocks/0')\n"
        "note: new: all_gather of `params/blocks/0/w2` (forward) over data: 768 bytes, needed by `dot_general` at model.py:10 "
        "in loss (jvp()), because of 3: ZeRO(stage=3, axis='data', params='params/blocks/0')\n"
        "note: new: all_gather of `params/blocks/0/w2` (backward) over data: 768 bytes, needed by `dot_general` at model.py:10 "
        "in loss (transpose(jvp())), because of 3: ZeRO(stage=3, axis='data', params='params/blocks/0')\n"
        "note: new: reduce_scatter of `grad(params/blocks/0/w1)` (backward), made at model.py:10 in loss (transpose(jvp())), "
        "over data: 768 bytes, needed by `mul`, because of 1: DataParallel(axis='data', inputs='x') and "
        "3: ZeRO(stage=3, axis='data', params='params/blocks/0')\n"
        "note: new: reduce_scatter of `grad(params/blocks/0/w2)` (backward), made at model.py:10 in loss (transpose(jvp())), "
        "over data: 768 bytes, needed by `mul`, because of 1: DataParallel(axis='data', inputs='x') and "
        "3: ZeRO(stage=3, axis='data', params='params/blocks/0')\n"
        "help: `plan.explain(value)` says which tactic decided, and why\n"
        "help: if this is what you want: pytest --update-plans"
    )


def test_a_layer_more_is_found_at_the_tactics_that_do_something_else(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "plan.partita").write_text(SAVED)
    failure = said(run(model=("LAYERS = 2", "LAYERS = 3")))
    assert failure.startswith("error: the plan of train_step is not that of `plan.partita`: 8 --> 12 all_reduce\n")
    assert "`params/blocks/*/w1` x 2: there are 3 now" in failure
    assert "was x: 5 all_reduce\n       is x: 7 all_reduce" in failure
    assert failure.count("note: new: all_reduce of") == 4
    assert "because of 2: Megatron(axis='model', column='**/w1')" in failure


def test_a_tactic_that_is_refused_is_named_at_its_line(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "plan.partita").write_text(SAVED.replace("'**/w1'", "'**/w3'"))
    failure = said(run())
    assert "note: the file has a tactic that is refused: no value is named `**/w3`" in failure
    assert "plan.partita:6:34" in failure


def test_a_file_that_was_written_by_hand_needs_no_records(run: Run, pytester: pytest.Pytester) -> None:
    written = "mesh data=4, model=2\nplan p { DataParallel('data', 'x'); Megatron('model', column='**/w1') }"
    (pytester.path / "plan.partita").write_text(written)
    assert "1 passed" in run()


def test_another_mesh_is_a_difference(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "plan.partita").write_text(SAVED.replace("data=4, model=2", "data=2, model=4"))
    assert "its mesh is data=4, model=2, not data=2, model=4" in run()


def test_budgets_are_kept_beside_the_file(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "plan.partita").write_text(SAVED)
    assert "1 passed" in run(test=TEST.replace("model.plan()", "model.plan(), all_gather=0, memory='<1MiB'"))
    output = run(test=TEST.replace("model.plan()", "model.plan(), all_reduce='<=3'"))
    assert "all_reduce: 8, expected <=3" in output


def test_the_file_replays_as_the_plan(run: Run, pytester: pytest.Pytester) -> None:
    run("--update-plans")
    names: dict[str, Any] = {}
    exec(MODEL, names)
    made: pt.Plan = names["plan"]()
    block = {"w1": jax.ShapeDtypeStruct((16, 32), "float32"), "w2": jax.ShapeDtypeStruct((32, 16), "float32")}
    x = jax.ShapeDtypeStruct((64, 16), "float32")
    again = pt.replay(names["train_step"], pytester.path / "plan.partita", {"blocks": [block] * 2}, x)
    assert (again.trace, again.layout(), again.counts()) == (made.trace, made.layout(), made.counts())
