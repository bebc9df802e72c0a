"""A typed line: its commands and their words, each with its columns, so that errors point into the line.

undo; explain params/w3     -->     error: no value is named `params/w3`
                                      --> shell:2:15
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn

from ...dialects.ground.errors import Error, Location

_WORD = re.compile(r'"[^"\n]*"|\S+')
# Matches what may contain a `;` that ends no command (quotes, brackets, a comment), and a `;` that ends one.
_MARK = re.compile(r"""(?P<quoted>"[^"]*"|'[^']*')|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comment>(?<!\S)\#.*)|(?P<end>;)""")


@dataclass(frozen=True, slots=True)
class TypedWord:
    """A word of a line, without quotes, and the columns that it takes, counted from 0."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Typed:
    """A line of a session, or the columns of one command in it: the text, the line's number, and its file."""

    text: str
    number: int = 1
    file: str = "shell"
    start: int = 0
    end: int | None = None

    @property
    def said(self) -> str:
        """The text of these columns."""
        return self.text[self.start : self.end].strip()

    @property
    def alone(self) -> str:
        """The text of these columns, with blanks in place of the columns before."""
        return " " * self.start + self.text[self.start : self.end]

    def commands(self) -> list["Typed"]:
        """The commands of the line, which `;` separates; empty ones too."""
        ends, depth = list[int](), 0
        for mark in _MARK.finditer(self.text):
            depth += (mark["open"] is not None) - (mark["close"] is not None)
            ends += [mark.start()] if mark["end"] and depth <= 0 else []
        starts = [0, *(end + 1 for end in ends)]
        return [replace(self, start=start, end=end) for start, end in zip(starts, [*ends, None], strict=True)]

    def to(self, other: "Typed") -> "Typed":
        """The columns from the start of this command to the end of another one."""
        return replace(self, end=other.end)

    @property
    def words(self) -> list[TypedWord]:
        """The words, up to a comment."""
        found = [
            TypedWord(each[0].strip('"') if each[0][:1] == '"' else each[0], *each.span())
            for each in _WORD.finditer(self.alone)
        ]
        comment = next((number for number, word in enumerate(found) if self.text[word.start] == "#"), len(found))
        return found[:comment]

    def location(self, start: int, end: int) -> Location:
        return Location(self.file, self.number, start + 1, max(end, start + 1) + 1, self.text)

    def fail(self, word: TypedWord | None, title: str, *helps: str) -> NoReturn:
        """Raises Error at a word, or after the last word if it is None."""
        end = len(self.alone.rstrip())
        raise Error(title, location=self.location(word.start, word.end) if word else self.location(end, end), helps=helps)

    @contextmanager
    def located(self) -> Generator[None]:
        """Points an error of a command without a location at the word that it is about.

        Its helps are computed here, in the language of this line.
        """
        try:
            yield
        except Error as error:
            start, end = len(self.alone) - len(self.alone.lstrip()), len(self.alone.rstrip())
            location = error.location or self.location(start, end).narrowed(error.title)
            if (location.file, location.line) == (self.file, self.number):
                location = replace(location, text=self.text)
            # Its helps are made here, in the language of who types.
            raise Error(error.title, location=location, label=error.label, notes=error.notes, helps=error.helps) from error
