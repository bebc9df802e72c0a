"""Every wrong program of `tests/errors/notation` gives the error beside it; `--update` rewrites the errors."""

from collections.abc import Callable
from pathlib import Path

import pytest
from wrong_programs import GALLERY, IN_NOTATION as PROGRAMS, answer_in_notation, wrong

from partita.compiler.notation.diagnostics import DIAGNOSTICS


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_wrong_program_gives_its_error(path: Path, golden: Callable[[Path, str], None]) -> None:
    golden(path.with_suffix(".err"), answer_in_notation(path))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_error_points_into_the_program_and_says_what_to_do(path: Path) -> None:
    error = wrong(path)
    assert error.location is not None
    assert error.location.line <= len(path.read_text().splitlines())
    assert error.helps


def test_every_error_has_its_program() -> None:
    assert {path.stem for path in (GALLERY / "notation").glob("*.err")} == {path.stem for path in PROGRAMS}


def test_every_class_of_diagnostic_has_a_program() -> None:
    assert {wrong(path).kind for path in PROGRAMS} == set(DIAGNOSTICS)
    assert len(PROGRAMS) >= 60


def test_no_two_programs_give_the_same_error() -> None:
    texts = [path.with_suffix(".err").read_text() for path in PROGRAMS]
    assert len(set(texts)) == len(texts)
