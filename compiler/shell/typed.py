"""A typed line: its words and their places, so that errors point at what was typed.

explain params/w3     -->     error: no value is named `params/w3`
                                --> shell:2:9
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from ...dialects.errors import Error, Location, relocated

_WORD = re.compile(r'"[^"\n]*"|\S+')


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a line, without quotes, and the columns that it takes, counted from 0."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Typed:
    """A line of a session: its text, its number, and the file that it comes from."""

    text: str
    number: int = 1
    file: str = "shell"

    @property
    def words(self) -> list[Word]:
        """The words, up to a comment."""
        found = [
            Word(each[0].strip('"') if each[0][:1] == '"' else each[0], *each.span()) for each in _WORD.finditer(self.text)
        ]
        comment = next((number for number, word in enumerate(found) if self.text[word.start] == "#"), len(found))
        return found[:comment]

    def location(self, start: int, end: int) -> Location:
        return Location(self.file, self.number, start + 1, max(end, start + 1) + 1, self.text)

    def fail(self, word: Word | None, title: str, *helps: str) -> NoReturn:
        """Raises an error at a word, or at the end of the line."""
        end = len(self.text.rstrip())
        raise Error(title, location=self.location(word.start, word.end) if word else self.location(end, end), helps=helps)

    @contextmanager
    def located(self) -> Generator[None]:
        """Points the errors of a command, which have no place of their own, at the word that they are about."""
        try:
            yield
        except Error as error:
            if error.location is not None:
                raise
            raise relocated(error, self._whole().narrowed(error.title)) from error

    def _whole(self) -> Location:
        """The whole line."""
        return self.location(len(self.text) - len(self.text.lstrip()), len(self.text.rstrip()))
