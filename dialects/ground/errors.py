"""The error that a user sees: what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
import inspect
import re
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import cast


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text: lines and columns count from 1, and `end_column` is the first column after the stretch."""

    line: int
    column: int
    end_line: int
    end_column: int


# A text with as many mistakes, or statements, as lines is split into lines only once.
@lru_cache(maxsize=8)
def lines_of(source: str) -> tuple[str, ...]:
    """Splits a text into lines as lark counts them: a form feed or a Unicode line separator does not end a line."""
    return tuple(source.split("\n"))


@dataclass(frozen=True, slots=True)
class Location:
    """A span of one line of a file, with that line: a program, a rule, a definition, or the user's Python.

    Lines and columns count from 1 and `end_column` is the first column after the stretch, as in lark's tokens. Column 0
    says that only the line is known; an empty `text` says that the line itself cannot be shown.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    text: str = ""

    @classmethod
    def of(cls, file: str, source: str, line: int, column: int = 0, end_column: int = 0) -> Location:
        """Returns the location on line `line` of `source`, the whole text of `file`."""
        lines = lines_of(source)
        return cls(file, line, column, end_column, lines[line - 1] if 0 < line <= len(lines) else "")

    def narrowed(self, title: str) -> Location:
        """The location of the first name in backticks of an error's title that stands in this span; else the whole span.

        tile params/w3.1 @model, "no value is named `params/w3`"   -->   the span of `params/w3`
        """
        said = self.text[: self.end_column - 1]
        for name in re.findall("`([^`]+)`", title) if self.column else ():
            found = re.compile(rf"(?<![\w/]){re.escape(name)}(?![\w/])").search(said, self.column - 1)
            if found is not None:
                return replace(self, column=found.start() + 1, end_column=found.end() + 1)
        return self

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class Error(Exception):
    """An error that the user can fix: the public `pt.Error`.

    Every error that a user can cause is a `pt.Error`, so one `except` is enough; any other exception is a defect of
    Partita. The title names the object, what was expected and what was given. A help says what to type.

    `helps` may be a function that finds them: what takes long to try is tried only if the error is shown.

    Its `str` begins with the title, as that of any exception; the command line puts `error: ` in front.

    ```
    error: `w1` cannot be tiled: 6 rows do not divide over `model` (4 devices)
      --> mlp.partita:3:36
       |
     3 | fn mlp(x: f32[B=512, D=6], w1: f32[D @model, H]) {
       |                                    ^^^^^^^^ 6 is not a multiple of 4
    help: pad it: `tile w1.0 @model padded`, or use `data` (2 devices)
    ```
    """

    # Where users find it, so a traceback ends in `partita.Error: ...`.
    __module__ = __name__.partition(".")[0]

    def __init__(
        self,
        title: str,
        *,
        location: Location | None = None,
        label: str = "",
        notes: Iterable[str] = (),
        helps: Iterable[str] | Callable[[], Iterable[str]] = (),
    ) -> None:
        if not isinstance(title, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Error("`title` of an Error takes a string", helps=['write pt.Error("what is wrong", helps=["what to do"])'])
        title, notes = _cut(str.__str__(title)), _texts("notes", notes)
        super().__init__(title)
        self.title = title
        self.location = location
        self.label = label
        self.notes = notes
        self._tried = helps if callable(helps) else None
        self._helps = () if callable(helps) else _texts("helps", helps)

    @property
    def helps(self) -> tuple[str, ...]:
        """What to type instead, one text for each way."""
        if self._tried is not None:
            self._helps, self._tried = _texts("helps", self._tried()), None
        return self._helps

    def __str__(self) -> str:
        lines = [self.title]
        if self.location is not None:
            lines += _source(self.location, self.label)
        elif self.label:
            lines.append(_entry("note", self.label))
        lines += [_entry("note", note) for note in self.notes]
        lines += [_entry("help", text) for text in self.helps]
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the frames that are the user's own code, then the error."""
        frames = [each for each in traceback.extract_tb(self.__traceback__) if not each.filename.startswith(_NOT_THE_USERS)]
        return [line.rstrip("\n") for line in traceback.format_list(frames)] + [f"error: {self}"]


def relocated(error: Error, location: Location | None) -> Error:
    """Returns the same error with another location."""
    return Error(error.title, location=location, label=error.label, notes=error.notes, helps=lambda: error.helps)


_ROOT = Path(__file__).parents[2]
_NOT_THE_USERS = (
    *(f"{_ROOT / room}/" for room in ("compiler", "dialects", "rewrites")),
    *(f"{sysconfig.get_path(kind)}/" for kind in ("stdlib", "purelib", "platlib")),
)
"""The folders of Partita, of Python and of installed packages: the user cannot fix an error there."""


def warn(warning: Warning) -> None:
    """Issues a warning at the user's line: the innermost frame outside of Partita, JAX and other installed packages."""
    files = (frame.f_code.co_filename for frame, _ in traceback.walk_stack(inspect.currentframe()))
    users = (level for level, file in enumerate(files, 1) if not file.startswith(_NOT_THE_USERS))
    warnings.warn(warning, stacklevel=next(users, 2))


_WIDEST = 400
"""The most characters of a source line that an error shows."""
_LONGEST = 1000
"""The most characters of one line of an error's own text, which may quote a long text."""


_MOST = 1000
"""The most notes or helps that an error keeps."""
_SEVERAL = (list, tuple, set, frozenset, Mapping, MappingView, Iterator)


def _texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """Checks the notes or helps of an error, and shortens lines that are too long."""
    several = tuple(islice(cast("Iterable[object]", given), _MOST)) if isinstance(given, _SEVERAL) else (given,)
    if not all(isinstance(each, str) for each in several):
        raise Error(f"`{name}` of an Error takes a list of strings")
    return tuple(_cut(str.__str__(cast(str, each))) for each in several)


def _cut(text: str) -> str:
    """Shortens each line that is longer than `_LONGEST` to its two ends."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    lines = (f"{line[:half]} ... {line[-half:]}" if len(line) > _LONGEST else line for line in text.split("\n"))
    return "\n".join(lines)


def _entry(kind: str, text: str) -> str:
    """Formats a note or a help, with its further lines indented."""
    return f"{kind}: " + text.replace("\n", "\n" + " " * (len(kind) + 2))


def _source(location: Location, label: str) -> list[str]:
    """Formats the arrow with the location, the source line, and the carets."""
    number = str(location.line)
    gutter = " " * (len(number) + 2) + "|"
    lines = [f"{' ' * (len(number) + 1)}--> {location}"]
    text = location.text.rstrip()
    if not text.strip():
        return [*lines, f"{gutter} {label}"] if label else lines
    start, end = location.column - 1, location.end_column - 1
    if location.column < 1:
        start, end = len(text) - len(text.lstrip()), len(text)
    if len(text) > _WIDEST:
        cut = max(0, start - _WIDEST // 2)
        text, start, end = text[cut : cut + _WIDEST], start - cut, min(end - cut, _WIDEST)
    # A tab is kept in the line of carets, so that it is as wide there as above.
    before = "".join("\t" if mark == "\t" else " " for mark in text[:start].ljust(start))
    carets = "^" * max(1, end - start)
    return [*lines, gutter, f" {number} | {text}", f"{gutter} {before}{carets} {label}".rstrip()]


def nearest(name: str, names: Iterable[str], n: int = 3) -> list[str]:
    """Returns at most `n` of `names` that are similar to `name`, the most similar first."""
    return difflib.get_close_matches(name, list(dict.fromkeys(names)), n=n, cutoff=0.5)


def first_line(error: Exception) -> str:
    """The first line of what a library says of an error, or the error's name."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def did_you_mean(name: str, names: Iterable[str], *otherwise: str, most: int = 1) -> list[str]:
    """The help for an unknown name: "did you mean `data`?", or `otherwise` if no name is similar."""
    near = nearest(name, names, most)
    return [f"did you mean {' or '.join(f'`{each}`' for each in near)}?"] if near else list(otherwise)
