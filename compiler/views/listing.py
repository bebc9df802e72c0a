"""Lists and mappings that show rows which are alike as one, so that a model of many layers fits a screen.

params/layers/0/wq   f32[8]
params/layers/1/wq   f32[8]    -->   params/layers/*/wq x 2   f32[8]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...dialects.english import counted
from .view import Cell, Grid, Part, View

T = TypeVar("T")

MOST = 20
"""The most rows that a listing shows."""
SHORT = 120
"""The most characters of a mapping that prints on a line."""
MOST_TEXTS = 5
"""The most items that a listing without columns shows, each of which may have several lines."""

_NUMBER = re.compile(r"(?<=/)(?<!^result/)\d+(?=/)|(?<=#)\d+|(?<=[A-Za-z]_)\d+(?=/)")


def starred(name: str) -> str:
    """The name without the numbers that tell layers apart: `layers/*/dot_general#*` of `layers/3/dot_general#7`."""
    return _NUMBER.sub("*", name)


def merged(rows: Iterable[Sequence[Cell]]) -> list[Sequence[Cell]]:
    """One row of those that differ only in the numbers of layers, and in sizes: their count after the name, their sums.

    blocks/0/w, 64; blocks/1/w, 64   -->   blocks/*/w x 2, 128
    """
    return list(map(_sum, _alike([*rows])))


def _alike(rows: Sequence[Sequence[Cell]]) -> list[list[Sequence[Cell]]]:
    """The rows, those that differ only in the numbers of layers, and in sizes, together."""
    alike: dict[tuple[str | None, ...], list[Sequence[Cell]]] = {}
    for row in rows:
        alike.setdefault(tuple(starred(cell) if isinstance(cell, str) else None for cell in row), []).append(row)
    return list(alike.values())


def _sum(rows: Sequence[Sequence[Cell]]) -> Sequence[Cell]:
    if len(rows) == 1:
        return rows[0]
    cells = [sum(cells) if isinstance(cells[0], int) else starred(cells[0]) for cells in zip(*rows, strict=True)]
    name, *lines = str(cells[0]).split("\n")
    return ["\n".join([f"{name} x {len(rows)}", *lines]), *cells[1:]]


def _text(item: object) -> Sequence[Cell]:
    return [str(item)]


def _true(of: object) -> bool:
    del of
    return True


def _nothing(of: object) -> Sequence[str]:
    del of
    return ()


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """How the items of a listing are shown: as rows whose first cell is a name, or, without columns, as texts."""

    of: str
    """What the items are, in the plural."""
    columns: Sequence[str] = ()
    row: Callable[[T], Sequence[Cell]] = _text
    notes: Callable[[Sequence[T]], Sequence[str]] = _nothing
    """Lines below the rows."""
    below: Callable[[T], Sequence[str]] = _nothing
    """Lines below a text, which are asked for only if it is shown: of those that are alike, for the first one."""
    has_row: Callable[[T], bool] = _true
    """Whether an item is shown on a screen of them."""
    merges: bool = True
    """Whether rows that differ only in numbers are one."""

    def parts(self, items: Sequence[T], whole: bool = False) -> Sequence[Part]:
        """A screen of the items, or all of them."""
        if not items:
            return [f"no {self.of}"]
        chosen = items if whole else [item for item in items if self.has_row(item)]
        every = list(map(self.row, chosen))
        first = {id(row): item for row, item in reversed([*zip(every, chosen, strict=True)])}
        groups = _alike(every) if self.merges else [[row] for row in every]
        most = len(groups) if whole else MOST if self.columns else MOST_TEXTS
        shown, left = groups[:most], len(groups) - min(most, len(groups)) + len(items) - len(chosen)
        more = [f"and {counted(left, 'row')} more: .all() shows all {len(items):,} {self.of}"] if left > 0 else []
        if self.columns:
            return [Grid(self.columns, [*map(_sum, shown)]), *more, *self.notes(items)]
        texts = ("\n".join([str(_sum(rows)[0]), *self.below(first[id(rows[0])])]) for rows in shown)
        return [*texts, *more, *self.notes(items)]


class Listing(View, list[T]):
    """A list that shows itself by a shape: a screen of it, or, if it is `whole`, all of it."""

    def __init__(self, items: Iterable[T] = (), shape: Shape[T] | None = None, whole: bool = False) -> None:
        super().__init__(items)
        self.shape, self.whole = shape or Shape("items"), whole

    def parts(self) -> Sequence[Part]:
        return self.shape.parts(self, self.whole)

    def all(self) -> Listing[T]:
        """The same list, which shows all of its rows."""
        return Listing(self, self.shape, whole=True).on(self.axes)


_NAMED = "value", "layout"


class Table(View, dict[str, str]):
    """A mapping from names to texts: a short one prints as the `dict` that it is, a longer one as a table of two columns."""

    def __init__(
        self, items: Mapping[str, str] | Iterable[tuple[str, str]] = (), columns: tuple[str, str] = _NAMED, whole: bool = False
    ) -> None:
        super().__init__(items)
        self.columns, self.whole = columns, whole

    def __str__(self) -> str:
        short = repr(dict(self))
        return short if len(short) <= SHORT else super().__str__()

    def parts(self) -> Sequence[Part]:
        return Shape(f"{self.columns[0]}s", self.columns, _pair).parts(list(self.items()), self.whole)

    def all(self) -> Table:
        """The same mapping, which shows all of its rows."""
        return Table(self, self.columns, whole=True).on(self.axes)


def _pair(item: tuple[str, str]) -> Sequence[Cell]:
    return item
