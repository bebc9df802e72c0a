"""The device sets that tactics claim in text: at ops, and at arguments.

%0 = lax.dot_general %x, %w {...} attributes {plan.on = [#plan.on<stage=1 by 4>]}   -->   ClaimOfSet(data@stage1=4, 3)
"""

from __future__ import annotations

from collections.abc import Iterable

from ...dialects.ground.errors import Error
from ...dialects.plan import OnAttr, OnSet
from ...dialects.ranges.algebra import Place
from ..decide.device_sets import ClaimOfSet, Claims, DeviceSets, along, units
from ..program.program import NodeId, Program, ValueId
from .ends import Ends, Holder, Notes, Texts, said as where


def note_sets(sets: DeviceSets | None, notes: Notes) -> None:
    """Writes the claims of device sets."""
    if sets is None:
        return
    for value, claim in sets.claims.arguments.items():
        notes.note(notes.ends.arguments[value], OnAttr(_said(claim)))
    noted = {sets.program.nodes[number].op: claim for number, claim in sets.claims.ops.items()}
    for op, claim in noted.items():
        notes.note(op, OnAttr(_said(claim)))


def _said(claim: ClaimOfSet) -> OnSet:
    return OnSet(tuple(along(claim.on).items()), claim.tactic + 1)


def read_sets(program: Program, ends: Ends, texts: Texts, placed: Iterable[Place]) -> DeviceSets | None:
    """The device sets that a text claims; None if it claims none. `placed` are the axes on which dims are.

    Raises Error for a part that the mesh does not have, for two claims at one place, and for dims along the sets.
    """
    ops, arguments = dict[NodeId, ClaimOfSet](), dict[ValueId, ClaimOfSet]()
    apart, holders = {*program.mesh.apart}, set[Holder]()
    for holder, said in texts.of(OnAttr):
        if {axis for axis, _ in said.coordinates} != apart or holder in holders or said.tactic < 1:
            sets = ", ".join(sorted(apart)) or "no axis: write `stage=2 sets` in the mesh"
            raise Error(f"{where(holder)} is on `{said}`", helps=[f"the sets are along {sets}, and tactics are counted from 1"])
        holders.add(holder)
        claim = ClaimOfSet(program.mesh.whole().in_space.at(**dict(said.coordinates)), said.tactic - 1)
        if isinstance(holder, int):
            arguments[program.arguments[holder]] = claim
        else:
            ops.update((node.number, claim) for node in ends.nodes.get(holder, ()))
    if (axis := next((axis for axis in placed if axis.name in apart), None)) is not None:
        raise Error(f"dims are placed on `{axis}`, along which the devices are several sets")
    if apart and not (ops or arguments):
        raise Error(f"nothing is on a set of those along {', '.join(sorted(apart))}", helps=["leave out `sets` in the mesh"])
    return DeviceSets(program, Claims(ops, arguments), units(program)) if apart else None
