"""The device sets that tactics claim in text: at ops, and at arguments.

%0 = lax.dot_general %x, %w {...} attributes {plan.on = [#plan.on<stage=1 by 4>]}   -->   ClaimOfSet(data@stage1=4, 3)
"""

from __future__ import annotations

from ...dialects.mesh import Mesh
from ...dialects.plan import OnAttr, OnSet
from ..decide.device_sets import ClaimOfSet, Claims, DeviceSets, along, on_sets
from ..program.program import NodeId, Program, ValueId
from .ends import Ends, Notes, Texts


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


def read_sets(program: Program, ends: Ends, texts: Texts) -> DeviceSets | None:
    """The device sets that a text claims; None if it claims none. Raises Error for a part that the mesh does not have."""
    ops, arguments = dict[NodeId, ClaimOfSet](), dict[ValueId, ClaimOfSet]()
    for holder, said in texts.of(OnAttr):
        claim = ClaimOfSet(_part(program.mesh, said), said.tactic - 1)
        if isinstance(holder, int):
            arguments[program.arguments[holder]] = claim
        else:
            ops.update((node.number, claim) for node in ends.nodes.get(holder, ()))
    return on_sets(program, Claims(ops, arguments)) if ops or arguments else None


def _part(mesh: Mesh, said: OnSet) -> Mesh:
    return mesh.whole().in_space.at(**dict(said.coordinates))
