"""`partita show` and `partita run`: a plan as tables.

train_step on data=4, model=2

value                        layout
params/blocks/*/w1 x 4       f32[data*16, model*128]
...
value                        collective   over   times     bytes   ...   tactic
params/blocks/*/w1 x 4       all_gather   data       8    98,304   ...   3
...
12 all_gather, 9 all_reduce; 147,456 bytes received by a device in a call
"""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ..api.plan import Plan
from ..views.listing import Listing, TextTable
from ..views.view import Cell, Grid


def report(plan: Plan, whole: bool = False) -> RenderableType:
    """A plan as tables for `rich.print`: tactics, layouts, collectives, conflicts, stops, and what is replicated."""
    views: list[tuple[str, Listing[object] | TextTable]] = [
        ("", plan.layout("**")),
        ("", plan.collectives()),
        ("open conflicts", plan.conflicts),
        ("propagation stopped", plan.blocked),
        ("runs unpartitioned", plan.whole),
        ("replicated, or computed by all devices of an axis", plan.silent()),
    ]  # pyright: ignore[reportAssignmentType]
    parts: list[RenderableType | None] = [table(("tactic",), ((plan.cited(n),) for n in range(len(plan.actions))))]
    for title, view in views:
        if view:
            shown: RenderableType = view.all() if whole else view
            parts.append(Group(Text(title), shown) if title else shown)
    return with_title(plan, *parts, Text(totals_line(plan)))


def with_title(plan: Plan, *parts: RenderableType | None) -> RenderableType:
    """Puts the program's name and mesh above these parts, without those that are None."""
    title = Text(f"{plan.source.traced.name} on {plan.mesh}")
    return Group(title, *(Padding(part, (1, 0, 0, 0)) for part in parts if part is not None))


def totals_line(plan: Plan) -> str:
    """One line with the collectives and bytes of a call, and the memory."""
    sent = f"{plan.bytes_per_device():,} bytes received by a device in a call"
    return f"{plan.counts().text()}; {sent}; {plan.memory().bytes:,} stored at the peak"


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> RenderableType | None:
    """A table with these rows; None if there are no rows."""
    found = list(rows)
    return Grid(columns, found) if found else None


def compared(plan: Plan, errors: Mapping[str, float]) -> RenderableType:
    """A table of results with their layouts, and their differences from the unpartitioned run."""
    layouts = plan.layout("result")
    rows = [(name, layouts[name], f"{error:.1e}") for name, error in errors.items()]
    return with_title(plan, table(("result", "layout", "largest error"), rows), Text(totals_line(plan)))
