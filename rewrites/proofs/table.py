"""The table of what is known of laws."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .laws import Group, Row

STYLE = {"proved": "green", "refuted": "red", "not proved": "yellow"}


def printed(console: Console, group: Group, rows: Sequence[Row]) -> None:
    """Prints the table of a group."""
    table = Table(*group.columns, "", "how, or why not", "ms", title=group.title, title_justify="left")
    for row in rows:
        verdict = row.verdict
        shown = Text(verdict.state, STYLE[verdict.state]), Text(verdict.how), f"{verdict.seconds * 1e3:.0f}"
        table.add_row(*map(Text, row.cells), *shown)
    if rows:
        count = sum(row.cases for row in rows if row.verdict.state == "proved")
        console.print(table)
        console.print(f"{count} of {sum(row.cases for row in rows)} are proved")
