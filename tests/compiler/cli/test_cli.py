"""The command line: each command on a small program, and each way to call it wrongly."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.cli.main import main
from partita.compiler.inputs import lines
from partita.compiler.shell.lowered_forms import FORMS
from partita.compiler.views.listing import TextTable
from partita.compiler.views.view import rendered

SHAPES = ("f32[256, 8]", "f32[8, 16]", "f32[16, 8]")
MESH = ("--mesh", "data=4, model=2")
TACTICS = ("-t", "tile('x', 0, 'data')", "-t", "tile('w1', 1, 'model')")
PROGRAM = """
import jax
import partita as pt

def chain(x, w1, w2):
    return (x @ w1) @ w2

def nothing():
    return {}

def wrong():
    return pt.plan(chain, pt.Mesh(data=4), *[jax.ShapeDtypeStruct((2, 3), "float32")] * 3)

def made():
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in [(256, 8), (8, 16), (16, 8)]]
    return pt.plan(chain, pt.Mesh(data=4), *shapes).tile("x", 0, "data")
"""

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command in a folder that holds the program above as mlp.py."""
    (tmp_path / "mlp.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, arguments, catch_exceptions=False)


def words(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.output.splitlines() if line.strip()]


def test_show_prints_layouts_and_collectives_of_a_function_that_it_partitions(run: Run):
    lines = words(run("show", "mlp.py:chain", *SHAPES, *MESH, *TACTICS))
    assert lines[0] == ["chain", "on", "data=4,", "model=2"]
    assert ["w2", "f32[model*8,", "8]"] in lines
    assert ["0", "result", "all_reduce", "model", "1", "2,048"] in [line[:6] for line in lines]


def test_show_prints_a_plan_that_a_function_returns(run: Run):
    lines = words(run("show", "mlp.py:made"))
    assert ["x", "f32[data*64,", "8]"] in lines
    assert lines[-1][:3] == ["no", "collectives;", "0"]


@pytest.mark.parametrize("form", FORMS)
def test_lower_prints_every_form(run: Run, form: str):
    result = run("lower", "mlp.py:chain", *SHAPES, *MESH, *TACTICS, "--to", form)
    assert result.exit_code == 0
    assert ("all_reduce" in result.output) == (form == "spmd") or form not in ("spmd", "unfused")


def test_lower_writes_a_form_to_a_file(run: Run):
    result = run("lower", "mlp.py:chain", *SHAPES, *MESH, *TACTICS, "--to", "stablehlo", "-o", "chain.mlir")
    assert (result.exit_code, result.output) == (0, "wrote chain.mlir\n")
    assert "stablehlo.all_reduce" in Path("chain.mlir").read_text()


def test_lower_saves_a_program(run: Run):
    arguments = "lower", "mlp.py:chain", *SHAPES, *MESH, *TACTICS, "--emit", "saved"
    assert "name it: --output step.partita-program" in run(*arguments).output
    assert "did you mean `cpu`?" in run(*arguments, "-o", "chain", "--platform", "cpus").output
    assert run(*arguments, "-o", "chain").output == "wrote chain\n"
    x, w1, w2 = (np.full(shape, 0.5, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
    np.testing.assert_array_equal(pt.load_compiled("chain")(x, w1, w2), x @ w1 @ w2)


def test_a_plan_file_gives_the_mesh_and_the_first_tactics(run: Run):
    Path("chain.partita").write_text("mesh data=4, model=2\n\nplan chain {\n  tile x.0 @data\n}\n")
    by_tactics = run("lower", "mlp.py:chain", *SHAPES, *MESH, *TACTICS).output
    assert run("lower", "mlp.py:chain", *SHAPES, "--plan", "chain.partita", *TACTICS[2:]).output == by_tactics
    run("lower", "mlp.py:chain", *SHAPES, "--plan", "chain.partita", *TACTICS[2:], "-o", "chain.mlir")
    assert Path("chain.mlir").read_text() == by_tactics
    on_another = run("lower", "mlp.py:chain", *SHAPES, "--plan", "chain.partita", "--mesh", "data=8").output
    assert 'array.mesh = "data=8"' in on_another
    assert ["w1", "f32[8,", "16]"] in words(run("show", "mlp.py:made", "--plan", "chain.partita"))
    assert "no such file" in run("show", "mlp.py:made", "--plan", "none.partita").output


def test_values_that_differ_in_a_number_and_have_one_layout_share_a_row():
    layouts = {"blocks/0/w": "f32[8]", "blocks/1/w": "f32[8]", "blocks/2/w": "f32[data*2]", "x/0": "f32[8]"}
    lines = rendered(TextTable(layouts, ("value", "layout"))).splitlines()[2:]
    assert [line.split("  ")[0] for line in lines] == ["blocks/*/w x 2", "blocks/2/w", "x/0"]


def test_explain_names_the_tactic(run: Run):
    result = run("explain", "mlp.py:chain", *SHAPES, *MESH, *TACTICS, "--value", "w2")
    assert "tile('w1', 1, 'model')" in result.output


def test_rules_prints_definitions_and_rules_by_name(run: Run):
    result = run("rules", "transpose", "exch*")
    assert result.output.startswith("dialects/definitions/definitions.def\ntranspose(src) ")
    assert "rewrites/rules/collectives.rules\nexchange: " in result.output


def test_rules_prints_the_ops_that_a_file_defines(run: Run, tmp_path: Path):
    (tmp_path / "model.py").write_text(
        'import partita as pt\n\npt.define("half_of(x)   out[i..] = @(x[i..])", lambda x: x / 2)\n'
    )
    text = "half_of(x)   out[i..] = @(x[i..])"
    assert text in run("rules", f"{tmp_path}/model.py").output
    assert text not in run("rules", f"{tmp_path}/model.py", "transpose").output
    assert "no such file" in run("rules", "nowhere.py").output


def test_rules_without_a_name_prints_them_all(run: Run):
    assert len(run("rules").output.splitlines()) > 100


@pytest.mark.parametrize(
    ("arguments", "title", "help"),
    [
        (["show", "mpl.py:chain"], "no such file: `mpl.py`", "write it as FILE.py:FUNCTION"),
        (["show", "mlp.py"], "expected a file and a function, got `mlp.py`", "write it as FILE.py:FUNCTION"),
        (["show", "mlp.py:chain", "f23[8]", *MESH], "`f23` in `f23[8]` is not a dtype", "f32[512,256]"),
        (["show", "mlp.py:chain", "f64[8]", *MESH], "`f64` in `f64[8]` would become f32", "JAX_ENABLE_X64=1"),
        (["show", "mlp.py:chain", "512,256", *MESH], "expected a shape, got `512,256`", "f32[512,256]"),
        (["explain", "mlp.py:made", "w1"], "`explain` needs the name of a value", "--value w1"),
        (["show", "mlp.py:chian"], "`mlp.py` has no function `chian`", "did you mean `chain`"),
        (["show", "mlp.py:xyz"], "`mlp.py` has no function `xyz`", "its functions: `chain`, `nothing`, `wrong`"),
        (["show", "mlp.py:chain"], "`mlp.py:chain` cannot be called with 0 shapes", "(x, w1, w2)"),
        (["show", "mlp.py:chain", *SHAPES], "`mlp.py:chain` is given shapes but no mesh", "--mesh data=4,model=2"),
        (["show", "mlp.py:nothing"], "`mlp.py:nothing` returned dict, expected a plan", "give --mesh"),
        (["show", "mlp.py:made", "-t", "tyle('x', 0, 'data')"], "unknown tactic `tyle`", "did you mean `tile`"),
        (["explain", "mlp.py:made", "--value", "y"], "`y`", "help"),
        (["rules", "transpoose"], "no definition or rule is called `transpoose`", "did you mean `transpose`"),
    ],
)
def test_a_wrong_call_ends_with_an_error_of_ours(run: Run, arguments: list[str], title: str, help: str):
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert title in result.stderr
    assert help in result.stderr


def test_what_the_program_raises_is_an_error_at_its_line(run: Run) -> None:
    result = run("show", "mlp.py:chain", "f32[8,4]", "f32[3,5]", "f32[5,2]", *MESH)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: your program raised TypeError: dot_general requires contracting dimensions")
    assert "mlp.py:6:13\n" in result.stderr and "     ^^^^^^\n" in result.stderr
    assert "note: the shapes were f32[8,4], f32[3,5], f32[5,2]" in result.stderr


def test_the_calls_on_the_way_to_it_are_named(run: Run) -> None:
    result = run("show", "mlp.py:wrong")
    assert result.stderr.startswith("error: your program raised TypeError: ")
    assert "note: called from mlp.py:12 in wrong" in result.stderr


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'", 1),
        ("x = 1\ndef f(x:\n    return x", "SyntaxError: '(' was never closed", 2),
        ("raise ValueError", "ValueError\n", 1),
    ],
)
def test_a_file_that_cannot_be_run_is_an_error_at_its_line(run: Run, text: str, said: str, line: int) -> None:
    Path("broken.py").write_text(text)
    for arguments in (["show", "broken.py:f"], ["rules", "broken.py"]):
        result = run(*arguments)
        assert f"error: your program raised {said}" in result.stderr and f"broken.py:{line}:" in result.stderr


def test_what_partita_raises_is_no_error_of_the_program(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    inside: dict[str, Callable[..., object]] = {}
    code = "def broken(*_):\n    raise KeyError('inside')"
    exec(compile(code, str(Path(lines.__file__).with_name("broken.py")), "exec"), inside)
    monkeypatch.setattr(Plan, "tile", inside["broken"])
    with pytest.raises(KeyError, match="inside"):
        run("show", "mlp.py:made")
