"""The table of commands: a function each, which takes what was asked, and answers.

@command("look", "explain VALUE", "explain params/w1", "value")
def explain(asked): ...

The first part of `usage` is the name; the kinds of arguments say what a terminal completes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeVar

from ...dialects.ground.amounts import there_are
from ..advice.conflicts import Conflict, conflict
from ..advice.open_conflicts import open_keys
from ..api.plan import Plan
from ..views.view import View
from . import typed_tactics
from .answer import Answer, as_text
from .session import Session
from .typed_line import Typed, TypedWord

Some = TypeVar("Some")

GROUPS = {
    "look": "Look at the plan",
    "move": "Go back, aside and on",
    "change": "Change it otherwise than by a tactic",
    "try": "Lower and run it",
    "other": "Other",
}
"""The groups of commands in `help`, in order."""

ALL = "all"
"""The last word of a command that wants all of its answer, instead of a screen of it."""


class CutAnswer(Protocol):
    """An answer that shows a screen of itself, and how to get all of it."""

    def all(self) -> View: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A command that was typed in a session, and the words behind its name; a word is picked by its place among these."""

    session: Session
    typed: Typed
    words: Sequence[TypedWord]

    @property
    def plan(self) -> Plan:
        return self.session.plan

    @property
    def said(self) -> list[str]:
        return [word.text for word in self.words]

    @property
    def is_whole(self) -> bool:
        """Whether it asks for all of its answer."""
        return self.said[-1:] == [ALL]

    def shown(self, what: CutAnswer) -> str:
        """An answer; all of it if that is asked for."""
        return as_text(what.all() if self.is_whole else what, self.session.width)

    def fail(self, at: int, title: str, *helps: str) -> NoReturn:
        self.typed.fail(self.words[at], title, *helps)

    def number(self, at: int, what: str, most: int) -> int:
        """A number from 1 on. Raises Error for any other word."""
        said = self.said[at]
        if not said.isdecimal() or not 1 <= int(said) <= most:
            there = f"{there_are(most)}, counted from 1" if most > 1 else "there is one, number 1" if most else "there are none"
            self.fail(at, f"expected the number of {what}, got `{said}`", there)
        return int(said)

    def picked(self, at: int, what: str, items: Sequence[Some]) -> Some:
        """The item of a number from 1 on."""
        return items[self.number(at, what, len(items)) - 1]

    def conflict(self, at: int) -> Conflict:
        """The open conflict of a number from 1 on."""
        return conflict(self.plan, self.picked(at, "an open conflict", [*open_keys(self.plan)]))


RunCommand = Callable[[Asked], Answer | str]
"""Runs a command. It may return only a text if the session does not change."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its group, its usage, an example, the kinds of its arguments, and the function that runs it."""

    group: str
    usage: str
    example: str
    takes: tuple[str, ...]
    run: RunCommand
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


def command(group: str, usage: str, example: str, *takes: str, slow: str = "") -> Callable[[RunCommand], RunCommand]:
    """Adds a function to the table; its docstring is its help."""

    def add(run: RunCommand) -> RunCommand:
        made = Command(group, usage, example, takes, run, slow)
        TABLE[made.name] = made
        return run

    return add


def known_words() -> dict[str, str]:
    """The words that a line can begin with (statements and commands), each with its summary."""
    return {
        **dict.fromkeys(typed_tactics.STATEMENTS, ""),
        **{name: typed_tactics.first_line(each.run) for name, each in TABLE.items()},
    }
