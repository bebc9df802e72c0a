"""The loops of a step, and what ends them or crosses from one to the next, as a page shows them.

t:8, 0.2 MFLOP, 256 bytes carried   -->   a row, and the lines that `plan.loops()` has below it
"""

from ..answers.loops import listed
from ..page.string_table import Json, Pools
from ..plan.state import State


def loops_json(plan: State, pools: Pools) -> Json:
    """The loops in the order in which they begin, and the lines below them."""
    found = listed(plan)
    rows = [[pools.text(run.loop), run.times, run.flops, run.folds, run.stores, run.kept] for run in found]
    return {"rows": rows, "notes": [*map(pools.text, found.shape.notes(found))] if rows else []}
