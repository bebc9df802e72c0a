"""The table of commands: one function each, which takes a session and the words after the command's name, and answers.

@command("look", "explain VALUE", "explain params/w1", "value")
def explain(session, typed, words): ...

The first part of `usage` is the name; the kinds of arguments say what a terminal completes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...dialects.ground.english import there_are
from ..advice.conflicts import Conflict, conflict
from ..advice.open_conflicts import open_keys
from . import tactics
from .answers import Answer
from .session import Session
from .typed import Typed, Word

Some = TypeVar("Some")

GROUPS = {
    "look": "Look at the plan",
    "move": "Go back, aside and on",
    "change": "Change it otherwise than by a tactic",
    "try": "Lower and run it",
    "other": "Other",
}
"""The groups of commands in `help`, in order."""

Words = Sequence[Word]
Run = Callable[[Session, Typed, Words], Answer | str]
"""Runs a command. It may return only a text if the session does not change."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its group, its usage, an example, the kinds of its arguments, and the function that runs it."""

    group: str
    usage: str
    example: str
    takes: tuple[str, ...]
    run: Run
    slow: str = ""
    """The text that a terminal shows while the command works, if that may take longer than a moment."""

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0]

    @property
    def most(self) -> int:
        """The most words that it takes."""
        return len(self.takes)

    @property
    def least(self) -> int:
        """The fewest words that it takes: those of `usage` that are not in brackets."""
        return len(re.sub(r"\[[^\]]*\]", "", self.usage).split()) - 1


TABLE: dict[str, Command] = {}
"""All commands by their names."""


def command(group: str, usage: str, example: str, *takes: str, slow: str = "") -> Callable[[Run], Run]:
    """Adds a function to the table; its docstring is its help."""

    def add(run: Run) -> Run:
        made = Command(group, usage, example, takes, run, slow)
        TABLE[made.name] = made
        return run

    return add


def known() -> dict[str, str]:
    """The words that a line can begin with (statements and commands), each with its summary."""
    return {**dict.fromkeys(tactics.STATEMENTS, ""), **{name: tactics.summary(each.run) for name, each in TABLE.items()}}


def number(typed: Typed, word: Word, what: str, most: int) -> int:
    """The number that a word stands for, from 1 to `most`. Raises Error for any other word."""
    if not word.text.isdecimal() or not 1 <= int(word.text) <= most:
        there = f"{there_are(most)}, counted from 1" if most > 1 else "there is one, number 1" if most else "there are none"
        typed.fail(word, f"expected the number of {what}, got `{word.text}`", there)
    return int(word.text)


def picked(typed: Typed, word: Word, what: str, items: Sequence[Some]) -> Some:
    """The item with this number, counted from 1. Raises Error for any other word."""
    return items[number(typed, word, what, len(items)) - 1]


def picked_conflict(session: Session, typed: Typed, word: Word) -> Conflict:
    """The open conflict with this number, counted from 1. Raises Error for any other word."""
    return conflict(session.plan, picked(typed, word, "an open conflict", [*open_keys(session.plan)]))
