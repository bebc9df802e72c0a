"""Every wrong program of `tests/errors/notation` gives the error beside it; `--update` rewrites the errors."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from root import ROOT

import partita as pt
from partita.compiler.notation.diagnostics import DIAGNOSTICS, Wrong

GALLERY = ROOT / "tests" / "errors" / "notation"
PROGRAMS = sorted(GALLERY.glob("*.partita"))


@cache
def answer(path: Path) -> Wrong:
    """The error of a program: of reading it, or of one of its plans."""
    with pytest.raises(Wrong) as caught:
        program = pt.load(path)
        for name in program.plans:
            program.plan(name)
    return caught.value


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_wrong_program_gives_its_error(path: Path, golden: Callable[[Path, str], None]) -> None:
    said = re.sub(r"--> \S*/(?=[^/\s]+:\d)", "--> ", f"error: {answer(path)}")
    golden(path.with_suffix(".err"), said.replace(f"{path.parent}/", "") + "\n")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_error_points_into_the_program_and_says_what_to_do(path: Path) -> None:
    error = answer(path)
    assert error.location is not None
    assert error.location.line <= len(path.read_text().splitlines())
    assert error.helps


def test_every_error_has_its_program() -> None:
    assert {path.stem for path in GALLERY.glob("*.err")} == {path.stem for path in PROGRAMS}


def test_every_class_of_diagnostic_has_a_program() -> None:
    assert {answer(path).kind for path in PROGRAMS} == set(DIAGNOSTICS)
    assert len(PROGRAMS) >= 60


def test_no_two_programs_give_the_same_error() -> None:
    texts = [path.with_suffix(".err").read_text() for path in PROGRAMS]
    assert len(set(texts)) == len(texts)
