"""Runs and renews the examples of the documentation.

A ```` ```python ```` block is run, in one namespace for the whole page; if the next thing on the page is a ```` ```text ````
block, that is what it must print. A ```` ```console ```` block holds commands, each behind `$ ` (its further lines behind
`> `), and what they print. A block of any other kind is only read; a ```` ```py ```` block is a whole program, which a test of
its own runs.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from root import ROOT

SLOW = ("make ", "pip ", "git ")
ERROR = re.compile(r"\b\d\.\de[-+]\d\d\b")
"""A difference between two runs: how they round depends on the machine."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its contents, its lines on the page, and whether it is the output of the block before."""

    kind: str
    text: str
    first: int
    last: int
    follows: bool


@dataclass(frozen=True, slots=True)
class Page:
    """A Markdown file while its examples run."""

    path: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def blocks(self) -> list[Block]:
        tokens = [token for token in MarkdownIt().parse(self.path.read_text()) if token.level == 0]
        kinds = ["", *(token.info if token.type == "fence" else "" for token in tokens)]
        return [
            Block(token.info, token.content, token.map[0] + 1, token.map[1] - 1, before == "python")
            for before, token in zip(kinds[:-1], tokens, strict=True)
            if token.type == "fence" and token.map
        ]

    def run(self) -> str:
        """The page with each output replaced by the actual output."""
        lines = self.path.read_text().splitlines(keepends=True)
        printed, edits = "", list[tuple[Block, str]]()
        for block in self.blocks():
            match block.kind:
                case "python":
                    printed = self.python(block)
                case "text" if block.follows:
                    edits.append((block, printed))
                case "console":
                    found = console(block.text)
                    alike = ERROR.sub("", found) == ERROR.sub("", block.text) and all(
                        float(e) < 1e-3 for e in ERROR.findall(found)
                    )
                    edits.append((block, block.text if alike else found))
                case _:
                    pass
        for block, text in reversed(edits):
            lines[block.first : block.last] = [text]
        return "".join(lines)

    def python(self, block: Block) -> str:
        """Runs a block; empty lines before it give its code the line numbers of the page."""
        code = compile("\n" * block.first + block.text, str(self.path), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, self.namespace)
        return tidy(output.getvalue())


def programs(path: Path) -> list[tuple[str, str]]:
    """The ```` ```py ```` blocks of a page, each with the next ```` ```text ```` block, which it prints."""
    found = list[tuple[str, str]]()
    code = ""
    for block in Page(path).blocks():
        if block.kind == "py":
            code = block.text
        elif block.kind == "text" and code:
            found.append((code, block.text))
            code = ""
    return found


def tidy(text: str) -> str:
    """Without blanks at the ends of lines, and with one line's end after the last."""
    return "".join(line.rstrip() + "\n" for line in text.rstrip().splitlines())


def console(text: str) -> str:
    """Runs the commands of a block and returns the block with what they print below each."""
    commands = re.findall(r"^\$ .*\n(?:> .*\n)*", text, re.MULTILINE)
    return "".join(command + shell(re.sub(r"^[$>] ", "", command, flags=re.MULTILINE)) for command in commands)


def users_environment() -> dict[str, str]:
    """The environment without the flags by which tests compile faster."""
    return {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}


def shell(command: str) -> str:
    """The output of a command. Commands that install or run everything are only looked up, because they may run the tests."""
    if command.startswith("make "):
        subprocess.run(f"make --dry-run {command.removeprefix('make ')}", shell=True, cwd=ROOT, check=True, capture_output=True)
    if command.startswith(SLOW):
        return ""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = users_environment() | {"PATH": path, "COLUMNS": "100"}
    done = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return tidy(done.stdout)
