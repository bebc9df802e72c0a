"""`partita shell`: runs a session in a terminal, from a pipe, or to record a picture."""

import sys
from collections.abc import Iterator
from shutil import get_terminal_size

import click
from rich.console import Console

from ...dialects.ground.errors import Error
from ..api.plan import Plan
from ..inputs.files import write_text
from ..shell.script import picture, run_script
from ..shell.session import WIDEST, Session

WIDTH = 100
"""The width of answers, in columns, where there is no terminal."""
LONGEST_LINE = 1 << 20
"""The most characters of a line of a script."""


def _file() -> str:
    """The name of the input, for errors. The name of a redirected file is not known."""
    name = getattr(sys.stdin, "name", "")
    return name if isinstance(name, str) and name and not name.startswith("<") else "input"


def _lines() -> Iterator[str]:
    """Yields the lines of the input. Raises Error for a line that does not end, as of a device."""
    while line := sys.stdin.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise Error(f"`{_file()}` is no script: it has a line of {LONGEST_LINE:,} characters or more")
        yield line


def _session(plan: Plan) -> Session:
    return Session.start(plan, min(get_terminal_size((WIDTH, 40)).columns, WIDEST))


def scripted(plan: Plan) -> None:
    """Answers each line of the standard input. Raises Error for the first line that fails."""
    run_script(_session(plan), _lines(), _file(), click.echo)


def recorded(plan: Plan, file: str, title: str) -> None:
    """Runs the lines of the standard input, and writes a picture of the session. Raises Error for a line that fails."""
    made, failed = picture(_session(plan), _lines(), _file(), f"partita shell {title}")
    write_text(file, made)
    if failed is not None:
        notes = [*failed.notes, f"the session up to this line is in {file}"]
        raise Error(failed.title, location=failed.location, label=failed.label, notes=notes, helps=failed.helps) from failed
    click.echo(f"the session is in {file}")


def talked(plan: Plan) -> None:
    """Runs a session in the terminal. Raises Error if prompt_toolkit is not installed."""
    try:
        from ..shell.terminal import Terminal
    except ModuleNotFoundError as error:
        if error.name != "prompt_toolkit":
            raise
        helps = ["pip install 'partita[shell]'", "without it, lines come from a file: partita shell FILE:NAME < tactics.txt"]
        raise Error("a session in a terminal needs prompt_toolkit, which is not installed", helps=helps) from None
    Terminal(_session(plan), Console()).run()
