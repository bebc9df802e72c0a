"""Pools: texts, source lines and layouts, which a page writes once and refers to by number."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from ..inputs.lines import SourceLine

Json = dict[str, object]
"""A JSON object in the page's data."""

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


class Pool(Generic[Key]):
    """Numbers keys in the order in which they are first asked for. `items` holds the page's data of each key."""

    def __init__(self, shown: Callable[[Key], object]) -> None:
        self.shown, self.items = shown, list[object]()
        self._numbers: dict[Key, int] = {}

    def number(self, key: Key) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.items)
            self.items.append(self.shown(key))
        return found


class Pools:
    """The pools of texts and of source lines."""

    def __init__(self) -> None:
        self.texts = Pool[str](str)
        self.lines = Pool[tuple[str, str, str]](list)
        self._known: dict[tuple[str, int, str], int] = {}

    def text(self, text: str) -> int:
        return self.texts.number(text)

    def each(self, texts: Sequence[str]) -> list[int]:
        """The numbers of many texts, few of which differ."""
        numbers = {text: self.text(text) for text in dict.fromkeys(texts)}
        return [numbers[text] for text in texts]

    def line(self, source: SourceLine | None) -> int:
        """The number of a source line: its place, its function and its code; -1 if there is no line."""
        if source is None or not source.line:
            return -1
        # Thousands of ops come from a few hundred lines, whose text takes longer to find than their number.
        key = source.file, source.line, source.function
        if (found := self._known.get(key)) is None:
            found = self._known[key] = self.lines.number(
                # Without what Python puts between nested functions: `adam.update`.
                (source.place, source.function.replace("<locals>.", ""), code_of(source))
            )
        return found


def code_of(source: SourceLine) -> str:
    """The code on a source line, without indentation; empty if its file cannot be read."""
    found = source.location()
    return "" if found is None else (found.text or "").strip()
