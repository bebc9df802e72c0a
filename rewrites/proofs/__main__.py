"""Proves each law, prints what is known of it, and fails if that is not what is stated.

python -m partita.rewrites.proofs [NAME ...]
"""

from __future__ import annotations

import sys
from time import perf_counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...dialects.ground.errors import Error
from .laws import GROUPS, Group, proved_lemmas

STYLE = {"proved": "green", "refuted": "red", "not proved": "yellow"}


def main(names: list[str]) -> int:
    """Prints a row a law, of all or of those with one of the names. Returns the exit status."""
    console = Console()
    wrong = [name for name, is_proved in proved_lemmas().items() if not is_proved]
    for group in GROUPS:
        wrong += printed(console, group, names)
    for each in wrong:
        console.print(f"not as stated: {each}", style="red", markup=False)
    return 1 if wrong else 0


def printed(console: Console, group: Group, names: list[str]) -> list[str]:
    """Prints the table of a group, and returns what is not as stated."""
    table = Table(*group.columns, "", "how, or why not", "ms", title=group.title, title_justify="left")
    start, wrong, count, proved = perf_counter(), list[str](), 0, 0
    for row in group.rows(names):
        before = perf_counter()
        found, is_as_stated = row.verdict()
        took = f"{(perf_counter() - before) * 1e3:.0f}"
        table.add_row(*map(Text, row.cells), Text(found.state, STYLE[found.state]), Text(found.how), took)
        wrong += [] if is_as_stated else [f"{', '.join(filter(None, row.cells))}: {found}"]
        count, proved = count + row.count, proved + row.count * (found.state == "proved")
    if count:
        console.print(table)
        console.print(f"{proved} of {count} are proved, in {perf_counter() - start:.1f} s")
    return wrong


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Error as error:
        sys.exit(str(error))
