"""Decides which conflicts are open: no tactic has placed the op or argument on the axis, or keeps what the op makes whole.

a + a.T, `a` tiled on 0: a conflict   --  tile('add#0', 0, 'data')   -->   none
"""

from collections.abc import Mapping

from ...rewrites.decide.table import WHOLE, Key
from ..plan.state import State


def open_keys(plan: State) -> Mapping[Key, int]:
    """The keys of the open conflicts in the plan's table, each with the conflict's number in `plan.conflicts`."""
    return plan.once(_numbered)


def _numbered(plan: State) -> dict[Key, int]:
    return {key: number for number, key in enumerate(key for key in plan.table.conflicts if is_open(plan, key))}


def is_open(plan: State, key: Key) -> bool:
    each = plan.table.conflicts.get(key)
    if each is None or each.axis not in plan.table.axes:
        return False
    table = plan.table.axes[each.axis]
    if each.node < 0:
        return table.values[each.value] is None
    made = [table.values[value] for value in plan.source.program.nodes[each.node].results]
    is_kept = bool(made) and all(claim is not None and claim.at == WHOLE for claim in made)
    return table.nodes[each.node] is None and not is_kept
