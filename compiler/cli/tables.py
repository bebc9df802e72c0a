"""`partita show`: a plan as tables.

train_step on data=4, model=2

value                     layout
params/blocks/*/w1 (4)    f32[data*16, model*128]
...
collective   over   value                times      bytes   because of
all_gather   data   params/blocks/*/w1       8     98,304   ZeRO(stage=3, axis='data', params='params')
...
12 all_gather, 9 all_reduce; 147,456 bytes received by a device in a call
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...rewrites.redistribute.steps import Bytes
from ..api.plan import Plan

MOST = 60
"""The most rows of a table; further rows are only counted."""

_NUMBER = re.compile(r"(?<=/)\d+(?=/)")


def report(plan: Plan) -> RenderableType:
    """Layouts, collectives by value and tactic, conflicts and stops, for `rich.print`."""
    parts = [
        table(("tactic",), ((action.text,) for action in plan.actions)),
        table(("value", "layout"), merged(plan.layout("**"))),
        _collectives(plan),
        table(("conflict",), ((str(each),) for each in plan.conflicts)),
        table(("propagation stopped",), ((str(each),) for each in plan.blocked)),
        table(
            ("runs unpartitioned", "value", "bytes"), ((each.primitive, each.value, f"{each.bytes:,}") for each in plan.whole)
        ),
        Text(summary(plan)),
    ]
    return titled(plan, *parts)


def titled(plan: Plan, *parts: RenderableType | None) -> RenderableType:
    """The parts that there are, below the program's name and its mesh."""
    title = Text(f"{plan.source.traced.name} on {plan.mesh}")
    return Group(title, *(Padding(part, (1, 0, 0, 0)) for part in parts if part is not None))


def summary(plan: Plan) -> str:
    """One line: the collectives and bytes of a call."""
    return f"{plan.counts().text()}; {plan.bytes_per_device():,} bytes received by a device in a call"


def merged(layouts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names that differ only in a number and have the same layout are one row, with their count.

    blocks/0/w: f32[8], blocks/1/w: f32[8]   -->   blocks/*/w (2): f32[8]
    """
    alike = Counter((_NUMBER.sub("*", name), layout) for name, layout in layouts.items())
    rows: dict[str, str] = {}
    for name, layout in layouts.items():
        star = _NUMBER.sub("*", name)
        count = alike[star, layout]
        rows[name if count == 1 else f"{star} ({count})"] = layout
    return list(rows.items())


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table | None:
    """A table of plain texts, because the brackets of a layout are not markup; None if it has no rows."""
    found = list(rows)
    if not found:
        return None
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in ("times", "bytes") else "left", overflow="fold")
    for row in found[:MOST]:
        made.add_row(*map(Text, row))
    if len(found) > MOST:
        made.add_row(f"and {len(found) - MOST} more")
    return made


def _collectives(plan: Plan) -> Table | None:
    """Collectives that are equal in kind, axes, tactic, place and name (except for numbers) are one row, with their sums."""
    times: Counter[tuple[str, ...]] = Counter()
    received: dict[tuple[str, ...], Bytes] = defaultdict(int)
    for each in plan.collectives():
        row = (each.kind, ", ".join(each.axes), _NUMBER.sub("*", each.value), each.tactic, each.where)
        times[row] += each.times
        received[row] += each.times * each.received
    # Most programs have no branches and no loops of unknown trip count.
    inside = any(row[-1] for row in times)
    columns = ("collective", "over", "value", *(("inside",) if inside else ()), "times", "bytes", "because of")
    rows = [(*row[:3], *((row[4],) if inside else ()), f"{times[row]:,}", f"{round(received[row]):,}", row[3]) for row in times]
    return table(columns, rows)
