"""Runs a line of a session: commands of the table, or tactics.

tile w1.1 @model; tile x.0 @data   -->   two steps, and their changes
undo; explain w1                   -->   two answers
"""

from collections.abc import Iterator
from dataclasses import replace

from ...dialects.ground.errors import did_you_mean
from ..gc_pause import without_collector
from ..inputs.message_language import read_in
from . import (
    help_commands as helping,
    history_commands as moving,
    query_commands as looking,
    run_commands as running,
    typed_tactics as tactics,
)
from .answer import Answer, Text
from .command_table import TABLE, Asked, Command, known_words
from .message_language import language
from .session import Session
from .typed_line import Typed

COMMANDS = (looking, moving, running, helping)
"""The files of commands, which add themselves to the table in this order."""


ALSO = {"exit": "quit", "?": "help"}
"""Names that other shells use -> the commands."""


def find_command(typed: Typed) -> Command | None:
    """The command of a line; None for a tactic. Raises Error for an unknown one."""
    first = typed.words[0]
    if tactics.is_tactic(typed):
        return None
    if first.text in ALSO:
        return TABLE[ALSO[first.text]]
    if first.text not in TABLE:
        names = (*known_words(), *tactics.calls())
        example = "reassociate" if first.text == "rewrite" else "data"
        called = [f'{first.text} is a tactic: call it, `{first.text}("{example}", ...)`; `help {first.text}` describes it']
        helps = (
            called if first.text in tactics.calls() else did_you_mean(first.text, names, "`help` lists the commands", most=3)
        )
        typed.fail(first, f"unknown command `{first.text}`", *helps)
    return TABLE[first.text]


def do(session: Session, typed: Typed) -> Answer:
    """Runs a line: all of its commands, one after another, or none of them.

    Raises Error, with a caret into the line; the session is then unchanged.
    """
    answer = Answer(session)
    for each in _commands_of(typed):
        before = answer.final()
        # A session is large and stays alive: the collector would walk all of it in the middle of an answer.
        with each.located(), without_collector(), read_in(language(each)):
            made = _done(answer.session, each)
        before = "" if made.clears else before
        later = None if made.later is None else _later(made.later, each, before)
        answer = replace(made, text=_below(before, made.text), clears=answer.clears or made.clears, later=later)
        if answer.ends:
            break
    return answer


def _commands_of(typed: Typed) -> list[Typed]:
    """Splits a line into commands. Adjacent tactics count as one, so that their changes are reported once."""
    found: list[Typed] = []
    for each in typed.commands():
        if each.words and found and tactics.is_tactic(each) and tactics.is_tactic(found[-1]):
            found[-1] = found[-1].to(each)
        elif each.words:
            found.append(each)
    return found


def _later(later: Iterator[Text], typed: Typed, before: str) -> Iterator[Text]:
    """The later texts of an answer, below the text `before`. Memory is collected between two of them."""
    while True:
        with typed.located(), without_collector():
            text = next(later, None)
        if text is None:
            return

        def said(width: int, text: Text = text) -> str:
            with typed.located(), read_in(language(typed)):
                return _below(before, text(width))

        yield said


def _below(before: str, text: str) -> str:
    return "\n".join(filter(None, [before, text]))


def _done(session: Session, typed: Typed) -> Answer:
    found = find_command(typed)
    if found is None:
        return tactics.apply_line(session, typed)
    given = typed.words[1:]
    if len(given) > found.most:
        typed.fail(given[found.most], f"expected {'the end' if found.most else 'nothing'} here", f"write `{found.usage}`")
    if len(given) < found.least:
        typed.fail(None, f"`{found.name}` needs more words", f"write `{found.usage}`, as `{found.example}`")
    made = found.run(Asked(session, typed, given))
    return Answer(session, made) if isinstance(made, str) else made
