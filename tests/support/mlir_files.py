"""Runs `.mlir` files as tests, in this process: the format of MLIR's own tests at a hundredth of their time.

    // RUN: partita-opt %s | partita-opt --print-op-generic | filecheck %s
    // CHECK: lax.add

A RUN line is one test: a chain of `partita-opt` and `filecheck`, each reading what the one before it has printed.
"""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

RUN = "// RUN:"


class Command(pytest.Item):
    """One RUN line."""

    line: str

    def runtest(self) -> None:
        text = ""
        for stage in self.line.split("|"):
            tool, *args = (str(self.path) if word == "%s" else word for word in shlex.split(stage))
            text = {"partita-opt": opt, "filecheck": check}[tool](args, text)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class MlirFile(pytest.File):
    """A `.mlir` file with at least one RUN line."""

    def collect(self) -> Iterator[Command]:
        lines = [line for line in self.path.read_text().splitlines() if line.startswith(RUN)]
        assert lines, f"{self.path} has no line that begins with `{RUN}`"
        for number, line in enumerate(lines):
            command = Command.from_parent(self, name=f"run{number}")  # pyright: ignore[reportUnknownMemberType]
            command.line = line.removeprefix(RUN).strip()
            yield command


def opt(args: Sequence[str], text: str) -> str:
    """`partita-opt ARGS`, reading `text` if the arguments do not name a file."""
    from partita.compiler.cli.opt import PartitaOpt

    out = StringIO()
    with patch.object(sys, "stdin", TextIOWrapper(BytesIO(text.encode()))), redirect_stdout(out):
        PartitaOpt(args=args).run()
    return out.getvalue()


def check(args: Sequence[str], text: str) -> str:
    """`filecheck ARGS`; fails the test if `text` is not what the file expects."""
    options = parse_argv_options(["filecheck", *args])
    said = StringIO()
    with redirect_stderr(said):
        failed = Matcher(options, FInput("-", text), Parser.from_opts(options)).run()
    if failed:
        pytest.fail(f"{said.getvalue()}\nthe output was\n\n{text}", pytrace=False)
    return text


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> MlirFile | None:
    """The hook that `conftest.py` imports."""
    return MlirFile.from_parent(parent, path=file_path) if file_path.suffix == ".mlir" else None  # pyright: ignore[reportUnknownMemberType]
