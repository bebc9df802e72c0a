"""Who reads a text, and so in which language it says what to type: Python, or the commands of a session in the shell.

No text about a plan writes a call itself. It asks for it here, and whoever shows the text has said who reads it.

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
    RANGES = "plan.ranges()", "ranges"
    RESOLVE = "pt.Resolve()", "resolve all"
    REWRITES = "plan.rewrites()", "rewrites"
    SILENT = "plan.silent()", "silent"
    TRACE = "print(plan.trace)", "history"
    TRY = "`.cure`", "blocked NUMBER"
    """Tries what could be done where propagation stops."""
    WAYS = "plan.conflicts[0].resolutions", "conflicts 1"


@dataclass(frozen=True, slots=True)
class Language:
    """How a reader types a step of a plan, an option of it, a question, and the wish to see all of an answer that is cut."""

    cited: Callable[[str], str]
    """A line of a trace, as sentences cite it."""
    step: Callable[[tuple[str, ...]], str]
    """What to type for lines of a trace; `...` stands for what the reader has to say."""
    option: Callable[[str], str]
    question: Callable[[Question], str]
    whole: Callable[[str], str]
    """What shows all of an answer, which has it in this attribute."""
    taken: Callable[[int], str]
    """What to type to take the cure of the stop of this number, counted from 0, and a colon."""
    explained: Callable[[int], str]
    """What to type to have the open conflict of this number explained, counted from 0."""
    first: int
    """What the reader counts the items of a list from."""


def _steps(lines: tuple[str, ...]) -> str:
    """Calls in Python: of methods one after another, or of tactics."""
    if all(line[:1].islower() for line in lines):
        return "plan." + ".".join(lines)
    made = ", ".join(f"pt.{line}" for line in lines)
    return made if len(lines) == 1 else f"plan.apply({made})"


PYTHON = Language(
    str,
    _steps,
    "{}=True".format,
    lambda asked: asked.value[0],
    str,
    "plan.apply(plan.blocked[{}].cure): ".format,
    "plan.explain(plan.conflicts[{}])".format,
    first=0,
)

_READER = ContextVar("reader", default=PYTHON)


@contextmanager
def read_in(language: Language) -> Generator[None]:
    """Texts that are made inside are for somebody who types this language."""
    before = _READER.set(language)
    try:
        yield
    finally:
        _READER.reset(before)


def cited(line: str) -> str:
    """A line of a trace, as sentences cite it."""
    return _READER.get().cited(line)


def step(*lines: str) -> str:
    """What to type for lines of a trace."""
    return _READER.get().step(lines)


def option(name: str) -> str:
    """What to add to a step, so that it has an option: `padded=True`."""
    return _READER.get().option(name)


def question(asked: Question) -> str:
    """What to type to ask that."""
    return _READER.get().question(asked)


def all_of(attribute: str) -> str:
    """What shows all of an answer that is cut, which has all of it in this attribute."""
    return _READER.get().whole(attribute)


def numbered(index: int) -> int:
    """The number by which the reader asks for an item of a list, given that counted from 0."""
    return _READER.get().first + index


def taken(number: int) -> str:
    """What to type to take the cure of the stop of this number, before what it costs."""
    return _READER.get().taken(number)


def explained(number: int) -> str:
    """What to type to have the open conflict of this number explained."""
    return _READER.get().explained(number)
