"""Decides which conflicts are open: no tactic has placed the op or argument on the axis, or keeps what the op makes whole.

A conflict of device sets is open until a tactic says where the op runs.

a + a.T, `a` tiled on 0: a conflict   --  tile('add#0', 0, 'data')   -->   none
a + b, `a` on stage=0, `b` on stage=1: a conflict   --  on('add#0', stage=1)   -->   none
"""

from collections.abc import Mapping

from ...rewrites.decide.device_sets import ClaimOfSet
from ...rewrites.decide.table import WHOLE, Key
from ...rewrites.program.program import NO_VALUE, NodeId, ValueId
from ..plan.state import State


def open_keys(plan: State) -> Mapping[Key, int]:
    """The keys of the open conflicts, those of axes first, each with the conflict's number in `plan.conflicts`."""
    return plan.once(_numbered)


def _numbered(plan: State) -> dict[Key, int]:
    every = (*plan.table.conflicts, *((number, NO_VALUE, plan.mesh.place(plan.mesh.apart[0])) for number in between_sets(plan)))
    return {key: number for number, key in enumerate(key for key in every if is_open(plan, key))}


def between_sets(plan: State) -> Mapping[NodeId, Mapping[ValueId, ClaimOfSet]]:
    """The ops in conflict about their device set: the operands that claims put on several, each with its claim."""
    return {} if plan.table.sets is None else plan.table.sets.conflicts


def is_of_sets(plan: State, key: Key) -> bool:
    """Whether a conflict is about the device set on which an op runs, and not about an axis."""
    return key[2].name in plan.mesh.apart


def is_open(plan: State, key: Key) -> bool:
    if is_of_sets(plan, key):
        return key[0] in between_sets(plan)
    each = plan.table.conflicts.get(key)
    if each is None or each.axis not in plan.table.axes:
        return False
    table = plan.table.axes[each.axis]
    if each.node < 0:
        return table.values[each.value] is None
    made = [table.values[value] for value in plan.source.program.nodes[each.node].results]
    is_kept = bool(made) and all(claim is not None and claim.at == WHOLE for claim in made)
    return table.nodes[each.node] is None and not is_kept
