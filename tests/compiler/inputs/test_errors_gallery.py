"""Every wrong program of `tests/errors` gives the error beside it, and leaves its plans unchanged.

The last statement of a program is the wrong one; `--update` rewrites the errors.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from wrong_programs import GALLERY, PROGRAMS, answer


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
