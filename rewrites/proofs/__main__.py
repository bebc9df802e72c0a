"""Proves each law, prints what is known of it, and fails if that is not what is stated.

python -m partita.rewrites.proofs [NAME ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...dialects.ground.errors import Error
from .laws import GROUPS, proved_lemmas

STYLE = {"proved": "green", "refuted": "red", "not proved": "yellow"}


class Found(NamedTuple):
    """What is printed of a law, and of how many cases; and whether it is as stated."""

    cells: tuple[str, ...]
    state: str
    how: str
    seconds: float
    cases: int
    is_as_stated: bool


def main(names: list[str]) -> int:
    """Prints a row a law, of all or of those with one of the names. Returns the exit status."""
    console, start = Console(), perf_counter()
    wrong = [name for name, is_proved in proved_lemmas().items() if not is_proved]
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        # Groups that take longer are begun first.
        order = sorted(range(len(GROUPS)), key=lambda number: not GROUPS[number].is_long)
        every = dict(zip(order, pool.map(found, order, [names] * len(order)), strict=True))
    for number, group in enumerate(GROUPS):
        wrong += printed(console, group.title, group.columns, every[number])
    console.print(f"all of it took {perf_counter() - start:.1f} s")
    for each in wrong:
        console.print(f"not as stated: {each}", style="red", markup=False)
    return 1 if wrong else 0


def found(number: int, names: list[str]) -> list[Found]:
    """Proves the laws of a group."""
    every = list[Found]()
    for row in GROUPS[number].rows(names):
        start = perf_counter()
        verdict, is_as_stated = row.verdict()
        seconds = row.seconds + perf_counter() - start
        every.append(Found((*row.cells,), verdict.state, verdict.how, seconds, row.count, is_as_stated))
    return every


def printed(console: Console, title: str, columns: Iterable[str], every: list[Found]) -> list[str]:
    """Prints the table of a group, and returns what is not as stated."""
    table = Table(*columns, "", "how, or why not", "ms", title=title, title_justify="left")
    for each in every:
        shown = Text(each.state, STYLE[each.state]), Text(each.how), f"{each.seconds * 1e3:.0f}"
        table.add_row(*map(Text, each.cells), *shown)
    if every:
        proved = sum(each.cases for each in every if each.state == "proved")
        console.print(table)
        console.print(f"{proved} of {sum(each.cases for each in every)} are proved")
    return [f"{', '.join(filter(None, each.cells))}: {each.state}, {each.how}" for each in every if not each.is_as_stated]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Error as error:
        sys.exit(str(error))
