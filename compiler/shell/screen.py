"""A session on a screen: what it begins with, and lines that are longer than the screen is wide.

train_step at llama.py:104: 887 ops, for 8 devices, data=2 model=4
  batch    i32[30, 9]
`ranges`: what can be tiled. `help`: all commands. Tab completes, Ctrl-D ends.
"""

import re
from itertools import pairwise
from textwrap import fill, wrap

from ..inputs.reader import read_in
from .language import SHELL
from .program import described
from .session import Session

START = "`ranges`: what can be tiled. `help`: all commands. Tab completes, Ctrl-D ends."

_GUTTER = re.compile(r"\s*\d*\s*\| ?")
_CARETS = re.compile(r"\s*\| *\^")


def greeting(session: Session) -> str:
    """What a session begins with: what the program is, and where to start."""
    with read_in(SHELL):
        return "\n".join([*described(session.plan), START])


def folded(text: str, width: int) -> str:
    """A text whose long lines go on below, further to the right. A screen would break them in the middle of a word.

    Of a line with carets below it, only that part is shown.
    """
    lines = [each for line in text.split("\n") for each in (_below(line, width) if _CARETS.match(line) else [line])]
    for at, (typed, carets) in enumerate(pairwise(lines)):
        if len(typed) > width and _GUTTER.match(typed) and _CARETS.match(carets):
            lines[at : at + 2] = _around(typed, carets, width)
    return "\n".join(line if len(line) <= width or _GUTTER.match(line) else _folded(line, width) for line in lines)


def _below(carets: str, width: int) -> list[str]:
    """A line of carets with what it says, which goes below them if it is too long."""
    ends = carets.rindex("^") + 1
    gutter, said = carets[: carets.index("|") + 2], carets[ends:].strip()
    if len(carets) <= width or not said:
        return [carets]
    return [carets[:ends], *(f"{gutter}{line}" for line in wrap(said, width - len(gutter), break_on_hyphens=False))]


def _around(typed: str, carets: str, width: int) -> tuple[str, str]:
    """As much of a line as fits, with the carets in it."""
    gutter = typed.index("|") + 2
    left = max(min(carets.index("^") - width // 2, len(typed) - width), 0)
    begun = typed[gutter + left : width + left]
    shown = f"…{begun[1:]}" if left else begun
    ends = len(typed) > width + left
    return typed[:gutter] + (f"{shown[:-1]}…" if ends else shown), carets[:gutter] + carets[gutter + left :]


def _folded(line: str, width: int) -> str:
    said = line.lstrip()
    indent = " " * (len(line) - len(said))
    return fill(
        said,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
