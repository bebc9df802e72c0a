"""A plan as tables: what `partita show` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from .plan import Plan

MOST = 40
"""Rows of a table; what is beyond is counted, not shown."""


def report(plan: Plan) -> Group:
    """Tactics, layouts, collectives by value, and what could not be decided, for `rich.print`."""
    parts = [
        table("tactics", ("tactic",), ((action.text,) for action in plan.actions)),
        table("layouts", ("value", "layout"), plan.layout("**").items()),
        table("collectives", ("kind", "axes", "value", "bytes", "times", "by"), _collectives(plan)),
        table("conflicts", ("conflict",), ((str(each),) for each in plan.conflicts)),
        table("stopped", ("where",), ((str(each),) for each in plan.blocked)),
        table("run whole", ("primitive", "value"), ((each.primitive, each.value) for each in plan.whole)),
    ]
    return Group(*(part for part in parts if part is not None), escape(summary(plan)))


def summary(plan: Plan) -> str:
    """One line: what a call communicates."""
    counts = ", ".join(f"{count} {kind}" for kind, count in plan.counts().items() if count) or "no collectives"
    return f"{counts}; {plan.bytes_per_device():,} bytes received by a device in a call"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table | None:
    """A table of texts; None if it has no rows."""
    found = list(rows)
    if not found:
        return None
    made = Table(title=title, title_justify="left")
    for column in columns:
        made.add_column(column)
    for row in found[:MOST]:
        made.add_row(*map(escape, row))
    if len(found) > MOST:
        made.add_row(f"and {len(found) - MOST} more")
    return made


def _collectives(plan: Plan) -> list[tuple[str, ...]]:
    """Equal rows are one, with their number in front."""
    rows = Counter(
        (each.kind, ", ".join(each.axes), each.value, f"{each.bytes:,}", str(each.times), each.tactic)
        for each in plan.collectives()
    )
    return [(row[0] if count == 1 else f"{count} {row[0]}", *row[1:]) for row, count in rows.items()]
