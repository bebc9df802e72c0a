"""Every wrong program of `tests/errors` gives the error beside it, and leaves its plans unchanged.

The last statement of a program is the wrong one; `--update` rewrites the errors.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from root import ROOT

import partita as pt

GALLERY = ROOT / "tests" / "errors"
PROGRAMS = [path for path in sorted(GALLERY.glob("*.py")) if path.stem != "conftest"]


def without_folders(text: str) -> str:
    """The text, without the folders of its locations: `--> /tmp/a/step.py:3:1` becomes `--> step.py:3:1`."""
    return re.sub(r"--> \S*/(?=[^/\s]+:\d)", "--> ", text)


def readings(names: dict[str, object]) -> dict[str, object]:
    """The reports of each plan, computed on a copy without memos."""
    plans = {name: replace(cast(pt.Plan, plan)) for name, plan in names.items() if isinstance(plan, pt.Plan)}
    return {name: (plan.trace, plan.layout(), plan.counts()) for name, plan in plans.items()}


def answer(path: Path) -> str:
    """The error of a program's last statement."""
    tree = ast.parse(path.read_text())
    wrong = tree.body.pop()
    names: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(tree, str(path), "exec"), names)
    before = readings(names)
    with pytest.raises(pt.Error) as caught:
        exec(compile(ast.Module([wrong], []), str(path), "exec"), names)
    assert readings(names) == before
    return without_folders(f"error: {caught.value}\n")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_wrong_program_gives_its_error(path: Path, golden: Callable[[Path, str], None]) -> None:
    golden(path.with_suffix(".err"), answer(path))


def test_every_error_has_its_program() -> None:
    assert {path.stem for path in GALLERY.glob("*.err")} == {path.stem for path in PROGRAMS}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_error_says_what_to_do(path: Path) -> None:
    """A cure, or for a text with a mistake in it the line and a caret."""
    text = path.with_suffix(".err").read_text()
    assert "\nhelp: " in text or "^" in text
