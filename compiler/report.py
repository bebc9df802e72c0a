"""A plan on a screen: where things lie, what is sent, and what could not be decided.

train_step on data=4, model=2
 params/blocks/*/w1   4   f32[data*16, model*128]
 ...
 kind         axes   times   bytes   tactic
 all_gather   data   16      98304   ZeRO(3, 'data', ...)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from .plan import Plan

_NUMBER = re.compile(r"(?<=/)\d+(?=/)")


def report(plan: Plan) -> RenderableType:
    """The plan as `partita show` prints it."""
    title = Text(f"{plan.source.traced.name} on {plan.mesh}", style="bold")
    parts = [_layouts(plan.layout(names), kind) for kind, names in _boundary(plan).items() if names]
    parts.append(_collectives(plan))
    for kind, items in (("conflicts", plan.conflicts), ("blocked", plan.blocked), ("whole", plan.whole)):
        parts += [Text("\n".join((kind, *(f"  {item}" for item in items))))] if items else []
    return Group(title, *(Padding(part, (1, 0, 0, 0)) for part in parts))


def merged(layouts: Mapping[str, str]) -> list[tuple[str, int, str]]:
    """(name, how many, layout): names that differ in numbers alone and lie alike are one row.

    blocks/0/w: f32[8], blocks/1/w: f32[8]   -->   (blocks/*/w, 2, f32[8])
    """
    rows = Counter((_NUMBER.sub("*", name), layout) for name, layout in layouts.items())
    first = {(_NUMBER.sub("*", name), layout): name for name, layout in reversed(layouts.items())}
    return [(row[0] if times > 1 else first[row], times, row[1]) for row, times in rows.items()]


def _boundary(plan: Plan) -> dict[str, list[str]]:
    return {"argument": plan.arguments(), "result": plan.results()}


def _layouts(layouts: Mapping[str, str], title: str) -> Table:
    rows = [(name + (f" ({times})" if times > 1 else ""), layout) for name, times, layout in merged(layouts)]
    return _table((title, "layout"), rows)


def _collectives(plan: Plan) -> RenderableType:
    times: Counter[tuple[str, str, str]] = Counter()
    received: Counter[tuple[str, str, str]] = Counter()
    for each in plan.collectives():
        row = (each.kind, ", ".join(each.axes), each.tactic)
        times[row] += each.times
        received[row] += each.times * each.bytes
    if not times:
        return Text("no collectives")
    rows = [(kind, axes, f"{times[kind, axes, why]:,}", f"{received[kind, axes, why]:,}", why) for kind, axes, why in times]
    total = ("", "", f"{times.total():,}", f"{received.total():,}", "bytes that one device receives in a call")
    return _table(("collective", "over", "times", "bytes", "because of"), [*rows, total])


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    """A table whose cells are plain text: the brackets of a layout are no markup."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in header:
        table.add_column(name, justify="right" if name in ("times", "bytes") else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
