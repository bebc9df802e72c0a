"""A session on a screen: its greeting, and lines that are longer than the screen is wide.

train_step at llama.py:104: 887 ops, for 8 devices, data=2 model=4
  batch    i32[30, 9]
`ranges`: what can be tiled. `help`: all commands. Tab completes, Ctrl-D ends.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import fill, wrap

from ...dialects.ground.amounts import counted, of_bytes
from ..api.plan import Plan
from ..inputs.message_language import Question, question, read_in
from ..inputs.names import name_parts
from .message_language import SHELL
from .session import Session

MOST_ARGUMENTS = 8
"""The most arguments, or trees of arguments, that are listed."""


def program_description(plan: Plan) -> list[str]:
    """The program's name, file, line, ops and mesh, and its arguments; if there are many, a line for each tree of them."""
    found = plan.source.traced.function
    place = found.location() or found.location("fn")
    where = f" at {Path(place.file).name}:{place.line}" if place is not None else ""
    ops, devices = (counted(len(plan.source.program.nodes), "op"), counted(plan.mesh.size, "device"))
    return [f"{found.name}{where}: {ops}, for {devices}, {str(plan.mesh).replace(', ', ' ')}", *_arguments(plan)]


def _arguments(plan: Plan) -> Iterator[str]:
    values = plan.source.addresses.arguments
    trees: dict[str, list[str]] = {}
    for name in values:
        trees.setdefault(name if len(values) <= MOST_ARGUMENTS else (name_parts(name) or [name])[0], []).append(name)
    room = max(map(len, trees), default=0)
    for tree, names in list(trees.items())[:MOST_ARGUMENTS]:
        yield f"  {tree:{room}}   {_shown(plan, names)}"
    if (more := len(trees) - MOST_ARGUMENTS) > 0:
        yield f"  and {more} more: {question(Question.ARGUMENTS)}"


def _shown(plan: Plan, names: Sequence[str]) -> str:
    """The type of one array; for several, their number, their size and the largest one."""
    values, types = plan.source.addresses.arguments, plan.source.program.types
    if len(names) == 1:
        return plan.layout_text(values[names[0]])
    largest = max(names, key=lambda name: types[values[name]].nbytes)
    total = of_bytes(sum(types[values[name]].nbytes for name in names))
    return f"{counted(len(names), 'array')}, {total}, the largest is {largest} {plan.layout_text(values[largest])}"


START = "`ranges`: what can be tiled. `help`: all commands. Tab completes, Ctrl-D ends."

_GUTTER = re.compile(r"\s*\d*\s*\| ?")
_CARETS = re.compile(r"\s*\| *\^")


def greeting(session: Session) -> str:
    """The greeting of a session: the program, and where to start."""
    with read_in(SHELL):
        return "\n".join([*program_description(session.plan), START])


def folded(text: str, width: int) -> str:
    """Wraps long lines, further lines indented, because a screen would break them in the middle of a word.

    Of a line with carets below it, only the part around the carets is shown.
    """
    lines = [each for line in text.split("\n") for each in (_below(line, width) if _CARETS.match(line) else [line])]
    for at, (typed, carets) in enumerate(pairwise(lines)):
        if len(typed) > width and _GUTTER.match(typed) and _CARETS.match(carets):
            lines[at : at + 2] = _around(typed, carets, width)
    return "\n".join(line if len(line) <= width or _GUTTER.match(line) else _folded(line, width) for line in lines)


def _below(carets: str, width: int) -> list[str]:
    """A line of carets with its label, which goes below the carets if it is too long."""
    ends = carets.rindex("^") + 1
    gutter, said = carets[: carets.index("|") + 2], carets[ends:].strip()
    if len(carets) <= width or not said:
        return [carets]
    return [carets[:ends], *(f"{gutter}{line}" for line in wrap(said, width - len(gutter), break_on_hyphens=False))]


def _around(typed: str, carets: str, width: int) -> tuple[str, str]:
    """As much of a line as fits around its carets, and the carets moved accordingly."""
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
