"""The commands on programs in index notation, and `partita run` on both kinds of files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from partita.compiler.cli.main import main

PROGRAM = """
mesh data=4

fn scale(x: f32[B=8, D=4], s: f32[D]) -> f32[B, D] {
  y[b, d] = x[b, d] * s[d]
  return y
}

fn mean(x: f32[B=8 @data, D=4]) -> f32[D] {
  y[d] = sum(b) x[b, d] / B
  return y
}

plan rows of scale { tile x.0 @data }
"""
PYTHON = """
import jax
import jax.numpy as jnp
import partita as pt

def noisy(key, x, scale):
    return x * scale + jax.random.normal(key, x.shape), (x > 0)

def made():
    key = jax.random.key(0)
    return pt.plan(noisy, pt.Mesh(data=4), key, jnp.ones((8, 4)), 2.0).tile("x", 0, "data")
"""

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command in a folder that holds the programs above, and some arrays."""
    (tmp_path / "two.partita").write_text(PROGRAM)
    (tmp_path / "plain.partita").write_text("fn f(x: f32[8]) -> f32[8] { y[i] = x[i] return y }")
    (tmp_path / "slip.partita").write_text("fn f(x: f32[8]) -> f32[8] { y[i] = x[k] return y }")
    (tmp_path / "noisy.py").write_text(PYTHON)
    np.save(tmp_path / "x.npy", np.full((8, 4), np.inf, np.float32))
    np.save(tmp_path / "small.npy", np.ones((4, 4), np.float32))
    np.savez(tmp_path / "both.npz", x=np.ones((8, 4), np.float32), s=np.ones(4, np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "two.partita"], "mean on data=4"),
        (["show", "plain.partita", "--mesh", "data=4", "-t", "tile('x', 0, 'data')"], "no collectives"),
        (["show", "two.partita:mean"], "f32[data*2, 4]"),
        (["show", "two.partita:scale"], "no collectives"),
        (["show", "two.partita:rows"], "tile('x', 0, 'data')"),
        (["show", "two.partita:rows", "--mesh", "data=2"], "scale on data=2"),
        (["show", "two.partita:rows", "-t", "tile('s', 0, 'data')"], "all_gather"),
        (["show", "two.partita:mean", "--notation"], "fn mean(x: f32[8, 4]) -> f32[4] {"),
        (["lower", "two.partita:mean"], "spmd.all_reduce"),
        (["explain", "two.partita:rows", "--value", "y"], "tile('x', 0, 'data')"),
        (["run", "two.partita:rows"], "f32[data*2, 4]"),
        (["run", "two.partita", "--seed", "3"], "1 all_reduce"),
        (["run", "two.partita:rows", "--input", "both.npz"], "0.0e+00"),
        (["run", "two.partita:rows", "--input", "x=x.npy"], "0.0e+00"),
        (["run", "noisy.py:made"], "result/1"),
    ],
)
def test_a_command_takes_a_program(run: Run, arguments: list[str], said: str):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert said in result.output


@pytest.mark.parametrize(
    ("arguments", "title", "help"),
    [
        (["show", "tow.partita"], "no such file: `tow.partita`", "the folder is"),
        (["show", "two.partita:rwos"], "has no plan `rwos`", "did you mean `rows`?"),
        (["show", "two.partita:rows", "f32[8, 4]"], "declares the shapes of its arguments", "leave out `f32[8, 4]`"),
        (["run", "two.partita", "--tolerance", "-1"], "`result` differs from the unpartitioned run", "--tolerance"),
        (["run", "two.partita", "--input", "x=nothing.npy"], "no such file: `nothing.npy`", "--input x=x.npy"),
        (["show", "two"], "expected a file and a function, got `two`", "FILE.partita"),
        (
            ["run", "two.partita:rows", "--mesh", "data=2,model=8"],
            "the mesh data=2, model=8 needs 16 devices, but there are 8",
            "--devices 16",
        ),
        (["show", "plain.partita"], "`plain.partita` names no mesh", "--mesh data=4"),
        (["show", "slip.partita"], "`k` is neither an index nor a value here", "sum(k)"),
        (["run", "two.partita", "--input", "x.npy"], "`x.npy` holds one array", "--input x=x.npy"),
        (["run", "two.partita", "--input", "x=both.npz"], "`both.npz` holds several arrays", "--input arrays.npz"),
        (["run", "two.partita", "--input", "z=x.npy"], "`z`", "help"),
        (
            ["run", "two.partita", "--input", "x=small.npy"],
            "argument `x` of `mean` is f32[8, 4], and its file holds [4, 4]",
            "help",
        ),
    ],
)
def test_a_wrong_call_ends_with_an_error_of_ours(run: Run, arguments: list[str], title: str, help: str):
    result = run(*arguments)
    assert result.exit_code == 1
    assert title in result.stderr
    assert help in result.stderr


def test_rows_of_tables_have_no_trailing_blanks(run: Run):
    for command in ("show", "run"):
        lines = run(command, "two.partita:rows").output.splitlines()
        assert lines
        assert all(line == line.rstrip() for line in lines)


def test_an_array_of_another_shape_is_an_error_at_the_argument(run: Run):
    found = run("run", "two.partita:mean", "--input", "x=small.npy")
    assert "argument `x` of `mean` is f32[8, 4], and its file holds [4, 4]" in found.output
    assert "--> two.partita:9:9" in found.output
    assert "pt.jit" not in found.output


def test_explain_without_a_value_asks_for_one(run: Run):
    assert "name one by an option, `--value x`" in run("explain", "two.partita:rows").output
