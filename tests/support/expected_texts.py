"""Expected texts: those that the oldest Python and JAX give that Partita runs on.

With newer ones a text may differ, because JAX writes some functions and derivatives with other ops, and values are named for
their ops. Its figures must be the same, counts, bytes, shapes, and its first line, which is the title of an error. The text is
then listed at the end of the run.
"""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from root import ROOT

KEY = "text: "
PYTHON = tuple(map(int, re.findall(r"\d+", tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])))


def original() -> str:
    """The versions that give the expected texts."""
    from partita.compiler.jax_private import OLDEST

    return f"Python {'.'.join(map(str, PYTHON))} and JAX {'.'.join(map(str, OLDEST))}"


def is_original() -> bool:
    """Whether this run should give the expected texts byte for byte."""
    from partita.compiler.jax_private import OLDEST, VERSION

    return (sys.version_info[:2], VERSION) == (PYTHON, OLDEST)


def numbers(text: str) -> list[str]:
    """The numbers of a text, without those of names: `all_gather of add#3: 512 bytes` has one.

    How many rows of a table a screen leaves out is none of them: ops are in one row if their names are alike.
    """
    return re.findall(r"(?<![\w#%.])\d[\d,.]*\b(?! rows more)", text)


def kept(text: str) -> tuple[str, list[str]]:
    """What is the same with each Python and JAX."""
    return text.partition("\n")[0], numbers(text)


def differing(text: str, expected: str) -> int:
    """How many lines of the expected text are others now."""
    lines = set(text.splitlines())
    return sum(line not in lines for line in expected.splitlines())


@pytest.fixture
def golden(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Callable[[Path, str], None]:
    """Compares a text with the file of expected text; with `--update` writes the file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update"):
            path.write_text(text)
        expected = path.read_bytes().decode() if path.exists() else ""
        if text != expected and not is_original() and kept(text) == kept(expected):
            record_property(KEY + str(path.relative_to(ROOT)), differing(text, expected))
        else:
            assert text == expected, f"{path.name} differs: make update"

    return compare


def check_update(config: pytest.Config) -> None:
    if config.getoption("--update") and not is_original():
        raise pytest.UsageError(f"the expected texts are those of {original()}: update them with these")


def summarize(terminalreporter: Any) -> None:
    """Lists the texts that differ."""
    reports = [each for each in terminalreporter.stats.get("passed", ()) if each.when == "call"]
    found = {key: lines for each in reports for key, lines in each.user_properties if key.startswith(KEY)}
    if found:
        terminalreporter.section(f"texts that differ from those of {original()}")
    for key, lines in sorted(found.items()):
        terminalreporter.write_line(f"{key.removeprefix(KEY)}: {lines} line{'' if lines == 1 else 's'}")
