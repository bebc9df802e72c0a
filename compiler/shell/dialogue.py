"""What a line of a session does: a command of the table, or tactics.

tile w1.1 @model; tile x.0 @data   -->   two steps, and what has changed
explain w1                         -->   the answer of the plan
"""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...dialects.errors import Error, did_you_mean
from ..api.replay import ACTIONS
from ..gc_pause import without_collector
from ..views.view import View
from . import helping, looking, moving, running, tactics
from .answers import Answer
from .commands import TABLE, Command, known
from .session import Session
from .typed import Typed

COMMANDS = (looking, moving, running, helping)
"""The files of commands, which add themselves to the table in this order."""

# A tactic in a Python text: `plan.rewrite(`, of which a session wants `rewrite(`.
_OF_PLAN = re.compile(rf"\bplan\.(?=(?:{'|'.join(ACTIONS)})\()")


def find(typed: Typed) -> Command | None:
    """The command of a line; None for a tactic. Raises Error for an unknown one."""
    first = typed.words[0]
    if tactics.is_tactic(typed):
        return None
    if first.text not in TABLE:
        names = (*known(), *tactics.calls())
        example = "reassociate" if first.text == "rewrite" else "data"
        called = [f'{first.text} is a tactic: call it, `{first.text}("{example}", ...)`; `help {first.text}` describes it']
        helps = (
            called if first.text in tactics.calls() else did_you_mean(first.text, names, "`help` lists the commands", most=3)
        )
        typed.fail(first, f"unknown command `{first.text}`", *helps)
    return TABLE[first.text]


def do(session: Session, typed: Typed) -> Answer:
    """What a line does. Raises Error, with a caret into the line; the session is then as it was."""
    if not typed.words:
        return Answer(session)
    # A session is large and stays alive: the collector would walk all of it in the middle of an answer.
    with typed.located(), _without_the_plan(), without_collector():
        answer = _done(session, typed)
    return answer if answer.later is None else replace(answer, later=_later(answer.later, typed))


@contextmanager
def _without_the_plan() -> Generator[None]:
    """Says in helps what a line takes: a tactic is called by its name. plan.rewrite("chunk", ...) --> rewrite("chunk", ...)"""
    try:
        yield
    except Error as error:
        helps = [_OF_PLAN.sub("", each) for each in error.helps]
        raise Error(error.title, location=error.location, label=error.label, notes=error.notes, helps=helps) from error


def _later(later: Iterator[View], typed: Typed) -> Iterator[View]:
    """What an answer says later, with errors as those of what it says at once. Between two views, memory is given back."""
    with typed.located():
        while True:
            with without_collector():
                view = next(later, None)
            if view is None:
                return
            yield view


def _done(session: Session, typed: Typed) -> Answer:
    found = find(typed)
    if found is None:
        return tactics.apply(session, typed)
    given = typed.words[1:]
    if len(given) > found.most:
        typed.fail(given[found.most], f"expected {'the end' if found.most else 'nothing'} here", f"write `{found.usage}`")
    if len(given) < found.least:
        typed.fail(None, f"`{found.name}` needs more words", f"write `{found.usage}`, as `{found.example}`")
    return found.run(session, typed, given)
