"""Config files in TOML: their values, and the location of each, so that errors can point at it.

tomllib reports where a text is not TOML, but not where a value is. So a place is found by trying: each word that may be the key
is renamed, and the key is the word whose new name then appears in the parsed table.

Config.read("strategy.toml").location(("tactics", 0, "axis"))   -->   strategy.toml:3:1, with the carets under `axis = "data"`
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ...dialects.ground.errors import Error, Location, did_you_mean
from .files import read_text

Keys = Sequence[str | int]
"""The path to a value: keys of tables, and numbers of list elements."""

_MARK = "partita-is-looking-for-this-key"
MOST_CHARACTERS = 1 << 22
"""The most characters that are parsed again to find a location."""
WIDEST = 1000
"""A value is marked alone only up to this width. For a wider one, its whole line is marked."""


@dataclass(frozen=True, slots=True)
class Config:
    """A config file: its text and its values. `path` is the file as it was given."""

    path: str
    text: str
    values: Mapping[str, object]

    @classmethod
    def read(cls, file: str | Path) -> "Config":
        """Reads a config file. Raises Error if it cannot be read, or, with a location, if it is not valid TOML."""
        text, name = read_text(file), Path(file).name
        try:
            return cls(str(file), text, tomllib.loads(text))
        except RecursionError:
            raise Error(f"`{name}` is nested too deeply", helps=["write tables with fewer levels"]) from None
        except ValueError as error:
            said = re.fullmatch(
                r"(?P<why>.*?)(?: \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\))?", str(error)
            )
            why, line, column = said.groups() if said else (str(error), None, None)
            last = text.rstrip().count("\n") + 1
            at = Location.of(str(file), text, int(line or last), int(column or 0), int(column or 0) + 1)
            helps = [
                "a text is in quotes, `axis = \"data\"`, and of several lines in three, `plan = '''...'''`",
                "a flag is `true` or `false`",
            ]
            raise Error(f"`{name}` is not valid TOML", location=at, label=why[:1].lower() + why[1:], helps=helps) from None

    @property
    def file(self) -> str:
        return Path(self.path).name

    def location(self, keys: Keys) -> Location | None:
        """The location of a value with its key: the first line, if it has several. None if it is not found."""
        if (start := self._start(keys)) is None:
            return None
        line, begin = self.text.count("\n", 0, start) + 1, self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", start)
        rest = self.text[start : end if end >= 0 else None].rstrip()
        length = self._length(rest, next(key for key in reversed(keys) if isinstance(key, str)))
        return Location.of(self.path, self.text, line, start - begin + 1, start - begin + 1 + length)

    def table(self, name: str) -> tuple[str, ...]:
        """The keys of a table that is named like `train.partition`. Raises Error if the file has no such table."""
        keys = tuple(name.split(".")) if name else ()
        for depth, key in enumerate(keys):
            around = cast("Mapping[str, object]", value_at(self.values, keys[:depth]))
            if not isinstance(around.get(key), dict):
                tables = [".".join((*keys[:depth], each)) for each, inside in around.items() if isinstance(inside, dict)]
                title = f"`{self.file}` has no table `{'.'.join(keys[: depth + 1])}`"
                helps = did_you_mean(name, tables, f"its tables: {', '.join(tables) or 'none'}")
                raise Error(title, helps=helps)
        return keys

    def block(self, keys: Keys) -> tuple[str, str, str]:
        """A text value with its place: the file, the value with blanks for all text before it, and the whole text of the file.

        A value with escapes differs from its form in the file, so it is returned as a separate text.
        """
        said = str(value_at(self.values, keys))
        start = self._start(keys)
        opened = re.compile(r"\S+?\s*=\s*(?:'''\n?|\"\"\"\n?|['\"])").match(self.text, start or 0)
        if start is None or opened is None or not self.text.startswith(said, opened.end()):
            return f"`{keys[-1]}` of {self.path}", said, said
        return self.path, re.sub(r"[^\n]", " ", self.text[: opened.end()]) + said, self.text

    def _start(self, keys: Keys) -> int | None:
        """The offset of a key; for a list element, that of its table."""
        if not keys:
            return None
        *into, last = keys
        found = self._starts(into if isinstance(last, int) else keys)
        if not isinstance(last, int):
            return next(found, None)
        places = list(found)
        return places[last if last < len(places) else 0] if places else None

    def _starts(self, keys: Keys) -> Iterator[int]:
        """Yields the offsets at which a key stands. An array of tables has one for each table."""
        *into, name = keys
        word = re.escape(str(name))
        for tried, found in enumerate(re.finditer(rf"\"{word}\"|'{word}'|(?<![\w-]){word}(?![\w-])", self.text), 1):
            if tried * len(self.text) > MOST_CHARACTERS:
                return
            try:
                renamed = tomllib.loads(self.text[: found.start()] + _MARK + self.text[found.end() :])
            except ValueError:
                continue
            if value_at(renamed, [*into, _MARK]) is not None:
                yield found.start()

    def _length(self, rest: str, key: str) -> int:
        """How many characters a location marks: a key with its value, or the rest of the line if the value does not end soon.

        For the header of a table it is the key alone.
        """
        pair = re.compile(r"[^=]*?=\s*").match(rest)
        if pair is None:
            return len(key)
        for end in range(pair.end() + 1, min(pair.end() + WIDEST, len(rest)) + 1):
            try:
                tomllib.loads(f"value = {rest[pair.end() : end]}")
            except ValueError:
                continue
            # A number, or a bare word, goes on.
            if not re.match(r"[\w.+-]", rest[end:]):
                return end
        return len(rest)


def value_at(values: object, keys: Keys) -> object:
    """The value at a path of keys; None if there is none."""
    for key in keys:
        match values, key:
            case dict(), str():
                values = cast("Mapping[str, object]", values).get(key)
            case list(), int() if key < len(cast("list[object]", values)):
                values = cast("list[object]", values)[key]
            case _:
                return None
    return values
