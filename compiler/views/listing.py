"""Lists and mappings that print rows which are alike as one, so that a model of many layers fits a screen.

params/layers/0/wq   f32[8]
params/layers/1/wq   f32[8]    -->   params/layers/*/wq x 2   f32[8]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from ...dialects.ground.amounts import counted
from ..inputs.message_language import all_of, numbered
from .grouping import alike
from .view import Cell, Grid, Part, View

T = TypeVar("T")

MOST_ROWS = 20
"""The most rows that a listing prints."""
SHORT = 120
"""The most characters of a mapping that prints on one line."""
MOST_NUMBERS = 2
"""The most numbers, or runs of numbers, that are printed for a merged row."""
MOST_TEXTS = 5
"""The most items that a listing without columns prints. Each may have several lines."""

NUMBER = "no."
"""The heading of the column with the numbers by which items are asked for."""

# It begins with what all alternatives have, a digit: that is twice as fast as an alternative that looks behind.
_NUMBER = re.compile(r"\d(?:(?<=/\d)(?<!^result/\d)\d*(?=/)|(?<=#\d)\d*|(?<=[A-Za-z]_\d)\d*(?=/))")


# Thousands of names are shown again and again.
@lru_cache(maxsize=1 << 16)
def starred(name: str) -> str:
    """Replaces the numbers in a name that tell layers apart: `layers/3/dot_general#7` --> `layers/*/dot_general#*`."""
    return _NUMBER.sub("*", name)


def merged(rows: Iterable[Sequence[Cell]]) -> list[Sequence[Cell]]:
    """Merges rows that differ only in the numbers of layers, and in sizes. The name gets their count, and sizes are added up.

    blocks/0/w, 64; blocks/1/w, 64   -->   blocks/*/w x 2, 128
    """
    return list(map(_sum, _alike([*rows])))


def _alike(rows: Sequence[Sequence[Cell]]) -> list[list[Sequence[Cell]]]:
    """Groups rows that differ only in the numbers of layers, and in sizes."""
    return alike(rows, lambda row: tuple(starred(cell) if isinstance(cell, str) else None for cell in row))


def _sum(rows: Sequence[Sequence[Cell]]) -> Sequence[Cell]:
    if len(rows) == 1:
        return rows[0]
    cells = [sum(cells) if isinstance(cells[0], int) else starred(cells[0]) for cells in zip(*rows, strict=True)]
    name, *lines = str(cells[0]).split("\n")
    return ["\n".join([f"{name} x {len(rows)}", *lines]), *cells[1:]]


def _numbers(numbers: Sequence[int]) -> str:
    """Abbreviates the numbers of merged rows: `3`, `6-17`, `1, 3, ...`."""
    runs: list[list[int]] = []
    for each in numbers:
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(texts[:MOST_NUMBERS]) + (", ..." if len(texts) > MOST_NUMBERS else "")


def by_index(items: Iterable[T]) -> Callable[[T], int]:
    """A function from each of these items to its number: its index, as the reader counts."""
    indices = {id(item): index for index, item in enumerate(items)}
    return lambda item: numbered(indices[id(item)])


# Functions with names, so that lists can be pickled.
def _its_text(item: object) -> Sequence[Cell]:
    return [str(item)]


def _nothing(_: object) -> Sequence[str]:
    return ()


def _always(_: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ListingForm(Generic[T]):
    """How the items of a listing print: as rows whose first cell is a name or, without columns, as texts."""

    of: str
    """The noun for the items, in the plural."""
    columns: Sequence[str] = ()
    row: Callable[[T], Sequence[Cell]] = _its_text
    notes: Callable[[Sequence[T]], Sequence[str]] = _nothing
    """Lines below all rows."""
    below: Callable[[T], Sequence[str]] = _nothing
    """Lines below the text of an item, computed only if it is printed. Of items that are alike, the first one's are taken."""
    has_row: Callable[[T], bool] = _always
    """Whether an item gets a row when not all rows are printed."""
    merges: bool = True
    """Whether rows that differ only in numbers are merged."""
    spare: Sequence[str] = ()
    """The columns that may be left out on a narrow screen, the first ones first."""
    number: Callable[[T], int] | None = None
    """The number by which an item is asked for, if it has one. It is printed first."""

    def parts(self, items: Sequence[T], whole: bool = False) -> Sequence[Part]:
        """The items as parts to print: as many as fit a screen, or all."""
        if not items:
            return [f"no {self.of}"]
        chosen = items if whole else [item for item in items if self.has_row(item)]
        every = list(map(self.row, chosen))
        of = {id(row): item for row, item in zip(every, chosen, strict=True)}
        groups = _alike(every) if self.merges else [[row] for row in every]
        most = len(groups) if whole else MOST_ROWS if self.columns else MOST_TEXTS
        shown, left = groups[:most], len(groups) - min(most, len(groups)) + len(items) - len(chosen)
        more = [f"and {counted(left, 'row')} more: {all_of('.all()')} shows all {len(items):,} {self.of}"] if left > 0 else []
        cited = [[_numbers([self.number(of[id(row)]) for row in rows])] if self.number else [] for rows in shown]
        if self.columns:
            columns = [*([NUMBER] if self.number else []), *self.columns]
            rows = [[*number, *_sum(rows)] for number, rows in zip(cited, shown, strict=True)]
            return [Grid(columns, rows, self.spare), *more, *self.notes(items)]
        texts = (
            "\n".join([": ".join([*number, str(_sum(rows)[0])]), *self.below(of[id(rows[0])])])
            for number, rows in zip(cited, shown, strict=True)
        )
        return [*texts, *more, *self.notes(items)]


class Listing(View, list[T]):
    """A list that prints by its shape: at most a screen of it or, if `whole`, all of it."""

    def __init__(self, items: Iterable[T] = (), shape: ListingForm[T] | None = None, whole: bool = False) -> None:
        super().__init__(items)
        self.shape, self.whole = shape or ListingForm("items"), whole

    def parts(self) -> Sequence[Part]:
        return self.shape.parts(self, self.whole)

    def all(self) -> Listing[T]:
        """Returns the same list, which prints all of its rows."""
        return Listing(self, self.shape, whole=True).on(self.axes)


_NAMED = "value", "layout"


class TextTable(View, dict[str, str]):
    """A mapping from names to texts. A short one prints as a `dict`, a longer one as a table of two columns."""

    def __init__(
        self, items: Mapping[str, str] | Iterable[tuple[str, str]] = (), columns: tuple[str, str] = _NAMED, whole: bool = False
    ) -> None:
        super().__init__(items)
        self.columns, self.whole = columns, whole

    def __str__(self) -> str:
        short = repr(dict(self))
        return short if len(short) <= SHORT else super().__str__()

    def parts(self) -> Sequence[Part]:
        shape: ListingForm[tuple[str, str]] = ListingForm(f"{self.columns[0]}s", self.columns, list)
        return shape.parts(list(self.items()), self.whole)

    def all(self) -> TextTable:
        """Returns the same mapping, which prints all of its rows."""
        return TextTable(self, self.columns, whole=True).on(self.axes)
