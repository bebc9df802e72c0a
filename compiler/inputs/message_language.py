"""The language in which texts say what to type: Python, or the commands of a session in the shell.

No text about a plan writes a call itself. It takes the call from here, in the language that whoever shows the text has set.

    step("tile('x', 0, 'data')")     -->     plan.tile('x', 0, 'data')     `tile x.0 @data`
    question(Question.RANGES)        -->     plan.ranges()                 `ranges`
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum


class Question(Enum):
    """What can be asked about a plan: in Python, and as a line of the shell."""

    ARGUMENTS = "plan.arguments()", "show"
    ANNOTATIONS = "`plan.annotations`", "annotations"
    BLOCKED = "plan.blocked", "blocked"
    COLLECTIVES = "plan.collectives()", "collectives"
    CONFLICTS = "plan.conflicts", "conflicts"
    GRAPH = "plan.lower()", "lower graph"
    RANGES = "plan.ranges()", "ranges"
    RESOLVE = "pt.Resolve()", "resolve all"
    REWRITES = "plan.rewrites()", "rewrites"
    SILENT = "plan.silent()", "silent"
    TRACE = "print(plan.trace)", "history"
    TRY = "`.cure`", "blocked NUMBER"
    """What to type to try cures where propagation stops."""
    WAYS = "plan.conflicts[0].resolutions", "conflicts 1"

    def __init__(self, python: str, shell: str) -> None:
        self.python, self.shell = python, shell


@dataclass(frozen=True, slots=True)
class Language:
    """How a reader types a step of a plan, an option, and a question, and how to see the whole of a shortened answer."""

    cited: Callable[[str], str]
    """Formats a line of a trace, as sentences cite it."""
    step: Callable[[tuple[str, ...]], str]
    """What to type for lines of a trace. `...` stands for what the reader must fill in."""
    option: Callable[[str], str]
    question: Callable[[Question], str]
    whole: Callable[[str], str]
    """How to see the whole of an answer, given the attribute that holds it."""
    taken: Callable[[int], str]
    """What to type to take the cure of a stop, by its number from 0, followed by a colon."""
    explained: Callable[[int], str]
    """What to type to have an open conflict explained, by its number from 0."""
    first: int
    """The number of the first item of a list, as the reader counts."""


def _steps(lines: tuple[str, ...]) -> str:
    """Writes lines of a trace as Python: a chain of methods, or calls of tactics."""
    if all(line[:1].islower() for line in lines):
        return "plan." + ".".join(lines)
    made = ", ".join(f"pt.{line}" for line in lines)
    return made if len(lines) == 1 else f"plan.apply({made})"


PYTHON = Language(
    str,
    _steps,
    "{}=True".format,
    lambda asked: asked.python,
    str,
    "plan.apply(plan.blocked[{}].cure): ".format,
    "plan.explain(plan.conflicts[{}])".format,
    first=0,
)

_READER = ContextVar("reader", default=PYTHON)


@contextmanager
def read_in(language: Language) -> Generator[None]:
    """Sets the language of the texts that are made inside of a `with` block."""
    before = _READER.set(language)
    try:
        yield
    finally:
        _READER.reset(before)


def cited(line: str) -> str:
    """Formats a line of a trace, as sentences cite it."""
    return _READER.get().cited(line)


def step(*lines: str) -> str:
    """What to type to apply lines of a trace."""
    return _READER.get().step(lines)


def option(name: str) -> str:
    """What to add to a step to set an option: `padded=True`."""
    return _READER.get().option(name)


def question(asked: Question) -> str:
    """What to type to ask a question."""
    return _READER.get().question(asked)


def all_of(attribute: str) -> str:
    """How to see the whole of a shortened answer, given the attribute that holds it."""
    return _READER.get().whole(attribute)


def numbered(index: int) -> int:
    """The number by which the reader asks for an item of a list, given its index from 0."""
    return _READER.get().first + index


def cure_command(number: int) -> str:
    """What to type to take the cure of a stop, by its number from 0, followed by a colon."""
    return _READER.get().taken(number)


def explained(number: int) -> str:
    """What to type to have an open conflict explained, by its number from 0."""
    return _READER.get().explained(number)
