"""The galleries of wrong programs, each of which has its error beside it."""

import ast
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import pytest
from root import ROOT

import partita as pt
from partita.compiler.notation.diagnostics import Wrong

GALLERY = ROOT / "tests" / "errors"
PROGRAMS = [path for path in sorted(GALLERY.glob("*.py")) if path.stem != "conftest"]
IN_NOTATION = sorted((GALLERY / "notation").glob("*.partita"))


def without_folders(text: str) -> str:
    """The text, without the folders of its locations: `--> /tmp/a/step.py:3:1` becomes `--> step.py:3:1`."""
    return re.sub(r"--> \S*/(?=[^/\s]+:\d)", "--> ", text)


def readings(names: dict[str, object]) -> dict[str, object]:
    """The reports of each plan, computed on a copy without memos."""
    plans = {name: replace(cast(pt.Plan, plan)) for name, plan in names.items() if isinstance(plan, pt.Plan)}
    return {name: (plan.trace, plan.layout(), plan.counts()) for name, plan in plans.items()}


def answer(path: Path) -> str:
    """The error of a program's last statement, which leaves the plans of the program as they are."""
    tree = ast.parse(path.read_text())
    wrong = tree.body.pop()
    names: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(tree, str(path), "exec"), names)
    before = readings(names)
    with pytest.raises(pt.Error) as caught:
        exec(compile(ast.Module([wrong], []), str(path), "exec"), names)
    assert readings(names) == before
    return without_folders(f"error: {caught.value}\n")


@cache
def wrong(path: Path) -> Wrong:
    """The error of a program in index notation: of reading it, or of one of its plans."""
    with pytest.raises(Wrong) as caught:
        program = pt.load(path)
        for name in program.plans:
            program.plan(name)
    return caught.value


def answer_in_notation(path: Path) -> str:
    return without_folders(f"error: {wrong(path)}").replace(f"{path.parent}/", "") + "\n"
