"""Locates a string literal in a Python program, so that errors in the string point into the user's file.

@pt.define("norm(x)  out[i..] = @(y[i..])")      -->      --> model.py:12:34, with the carets under `y`
"""

import linecache
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import FrameType
from typing import NoReturn, Self

from ...dialects.ground.errors import Error, Location


@dataclass(frozen=True, slots=True)
class Written:
    """A text, and where its first non-blank line is in a file. `line` and `column` count from 1.

    A text that cannot be found, such as one that the program computed, is treated as a separate file.
    """

    text: str
    file: str = "<definition>"
    line: int = 1
    column: int = 1

    @classmethod
    def of(cls, text: str, frame: FrameType | None) -> Self:
        """Locates a text in the file of the calling frame."""
        if frame is None or not text.strip():
            return cls(text)
        whole = text.splitlines()
        rows = whole[next(number for number, row in enumerate(whole) if row.strip()) :]
        file, start = frame.f_code.co_filename, frame.f_lineno
        lines = linecache.getlines(file)
        # A literal, not the end of another one.
        indent = len(rows[0]) - len(rows[0].lstrip())
        literal = re.compile(rf"(?:^|[\"'])(\s*){re.escape(rows[0].strip())}\s*(?:$|[\"'\\])")
        # Search from the call onwards, then before it: the text may be bound to a name earlier.
        for number in (*range(start - 1, len(lines)), *range(min(start - 1, len(lines)))):
            found = literal.search(lines[number].rstrip("\n"))
            if found and all(map(operator.contains, lines[number + 1 :], rows[1:])):
                return cls(text, file, number + 1, found.end(1) - indent + 1)
        return cls(text)

    def location(self, line: int, column: int, end: int) -> Location:
        """The location in the file of a range of the text."""
        lines = self.text.splitlines() or [""]
        if self.file == "<definition>":
            return Location.of(self.file, self.text, line, column, end)
        first = next(number for number, row in enumerate(lines, start=1) if row.strip())
        shift = self.column - 1 if line == first else 0
        number = self.line + line - first
        return Location(self.file, number, column + shift, end + shift, linecache.getline(self.file, number).rstrip("\n"))

    def laid_out(self) -> str:
        """The text, padded with blanks so that each word has the same line and column as in the file."""
        whole = self.text.splitlines()
        first = next(number for number, row in enumerate(whole) if row.strip())
        rows: list[str] = []
        for number, row in enumerate(whole[first:], start=self.line):
            column = max(linecache.getline(self.file, number).find(row), 0) if rows else self.column - 1
            rows.append(" " * column + row)
        return "\n" * (self.line - 1) + "\n".join(rows)

    def find(self, name: str, head: bool = False) -> Location:
        """Locates a name in the text: after the operand list if it occurs there; otherwise, or with `head`, its first use."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        found = word.search(self.text, 0 if head else max(0, self.text.find(")"))) or word.search(self.text)
        start, end = found.span() if found else (0, len(self.text.split("(")[0]))
        line = self.text.count("\n", 0, start) + 1
        begin = self.text.rfind("\n", 0, start) + 1
        return self.location(line, start - begin + 1, end - begin + 1)

    def again(self, error: Error, helps: tuple[str, ...] = ()) -> NoReturn:
        """Raises an error about the text again, with its location in the file, and with additional helps."""
        at = error.location
        location = self.location(at.line, at.column, at.end_column) if at is not None else None
        helps = (*error.helps, *helps)
        raise Error(error.title, location=location, label=error.label, notes=error.notes, helps=helps) from None

    def fail(self, name: str, title: str, *helps: str, label: str = "", notes: Iterable[str] = ()) -> NoReturn:
        """Raises an error at the first mention of a name."""
        raise Error(title, location=self.find(name), label=label, notes=notes, helps=helps)

    def renamed(self, text: str) -> Self:
        """A text that is derived from this one. Errors in it point at the start of this one."""
        return replace(self, text=text)
