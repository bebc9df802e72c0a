"""`partita shell`: a script from a pipe, a picture, and what it says where prompt_toolkit is missing."""

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from partita.compiler.cli import shell as shell_command
from partita.compiler.cli.main import main

PROGRAM = """
import jax
import partita as pt

def chain(x, w1, w2):
    return (x @ w1) @ w2

def plan():
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in [(256, 8), (8, 16), (16, 8)]]
    return pt.plan(chain, pt.Mesh(data=4, model=2), *shapes)
"""
NOTATION = "mesh data=4\nfn f(x: f32[B=8 @data]) -> f32[B] { y[b] = x[b] * 2.0 return y }\n"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlp.py").write_text(PROGRAM)
    (tmp_path / "f.partita").write_text(NOTATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "100")


def shell(lines: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["shell", *arguments], input=lines, catch_exceptions=False)


@pytest.mark.parametrize(
    "target",
    [("mlp.py:plan",), ("mlp.py:chain", "f32[256,8]", "f32[8,16]", "f32[16,8]", "--mesh", "data=4,model=2")],
    ids=["a plan", "a function with shapes"],
)
def test_a_script_is_answered_line_by_line(target: tuple[str, ...]) -> None:
    result = shell("tile x.0 @data\nsave plan.partita\n", *target)
    assert result.exit_code == 0
    assert result.output == (
        "data=4 model=2 · no collectives > tile x.0 @data\n"
        "layouts: x: f32[256, 8] --> f32[data*64, 8]\n"
        "  result: f32[256, 8] --> f32[data*64, 8]\n"
        "a device receives 0 bytes in a call; it holds 3.00 KiB of arguments, before 9.00 KiB\n"
        "data=4 model=2 · no collectives > save plan.partita\n"
        '1 tactic in plan.partita; in Python: pt.replay(chain, "plan.partita", *args)\n'
    )
    assert "tile x.0 @data" in Path("plan.partita").read_text()


def test_a_program_in_index_notation_begins_with_its_annotations() -> None:
    assert "x   f32[data*2]" in shell("show x all\nhistory\n", "f.partita").output.replace("       ", "   ")


def test_tactics_of_the_command_line_come_first() -> None:
    assert "1: tile x.0 @data" in shell("history\n", "mlp.py:plan", "-t", "tile('x', 0, 'data')").output


def test_the_first_line_that_fails_ends_the_script() -> None:
    result = shell("tile x.0 @data\ntile y.0 @data\nundo\n", "mlp.py:plan")
    assert result.exit_code == 1
    assert "error: no value is named `y`\n  --> input:2:6\n   |\n 2 | tile y.0 @data\n   |      ^\n" in result.output
    assert "undo" not in result.output


def test_a_session_is_drawn() -> None:
    result = shell("tile x.0 @data\n", "mlp.py:plan", "--record", "session.svg")
    assert (result.exit_code, result.output) == (0, "the session is in session.svg\n")
    assert Path("session.svg").read_text().startswith("<svg")


def test_a_session_is_drawn_up_to_the_line_that_fails() -> None:
    result = shell("tile x.0 @data\ntile x.9 @data\n", "mlp.py:plan", "--record", "session.svg")
    assert result.exit_code == 1
    assert "`x` has no dim 9" in result.output and "the session up to this line is in session.svg" in result.output
    assert "no&#160;dim&#160;9" in Path("session.svg").read_text()


def test_a_terminal_needs_prompt_toolkit_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def find_spec(self, name: str, *_: Any) -> None:
            if name.partition(".")[0] == "prompt_toolkit":
                raise ModuleNotFoundError(f"No module named {name!r}", name="prompt_toolkit")

    for name in [name for name in sys.modules if name.startswith("prompt_toolkit") or name.endswith("shell.terminal")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(Exception, match="needs prompt_toolkit, which is not installed") as caught:
        shell_command.talked(None)  # pyright: ignore[reportArgumentType]
    assert "pip install 'partita[shell]'" in str(caught.value)
