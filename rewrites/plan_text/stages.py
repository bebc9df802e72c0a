"""The stages of a plan from text to text: each reads its module's attributes, and calls what a plan calls.

claims of tactics --propagated--> claims of all ops --decided--> decisions --materialised--> placed builders and slicers
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...dialects.array import mesh_of
from ...dialects.ground.errors import Error
from ...dialects.plan import PREFIX, ClaimAttr, HomeAttr, MoveAttr, OwnAttr, PlaceAttr, SumAttr
from ...dialects.ranges.algebra import Place
from ..decide.ahead import decide_all
from ..decide.decide import Decisions, moved
from ..decide.propagate import propagate
from ..decide.table import Claim, claim_layout
from ..program.flatten import flatten
from ..program.program import Program, ValueId
from .claims import read_claims, with_claims
from .decisions import read_decisions, read_placements, with_decisions
from .ends import Texts, tactics_of_text


def _opened(module: ModuleOp) -> tuple[Program, Texts]:
    """The program of a module, and what its attributes say; it loses them."""
    main = module.body.block.first_op
    foreign = [op.name for op in main.walk() if op is not main and op.name.split(".")[0] not in ("lax", "func")] if main else []
    if not isinstance(main, FuncOp) or foreign:
        what = f"it has `{foreign[0]}`" if foreign else "it does not begin with a `func.func`"
        raise Error(f"claims and decisions are of a program of `lax` ops, but {what}")
    texts = Texts(module)
    return flatten(module, mesh_of(module)), texts


def verified(module: ModuleOp) -> None:
    """Raises Error if the claims or the decisions of a module are wrong.

    A text without moves says only where ops run and which sums they carry; its moves are still to be found.
    """
    if not any(name.startswith(PREFIX) for op in module.walk() for name in (*op.attributes, *op.properties)):
        return
    program, texts = _opened(module.clone())
    if texts.has(ClaimAttr, OwnAttr):
        read_claims(program, texts)
    if texts.has(MoveAttr):
        read_decisions(program, texts, mesh_of(module))
    elif texts.has(PlaceAttr, SumAttr, HomeAttr):
        read_placements(program, texts)


def propagated(module: ModuleOp) -> ModuleOp:
    """Carries the claims on values to all ops: those of one tactic after those of another, in the order of their numbers."""
    program, texts = _opened(module)
    table, seeds = read_claims(program, texts), dict[tuple[int, Place], dict[ValueId, Claim]]()
    for axis, each in table.axes.items():
        for value, claim in zip(program.values, each.values, strict=True):
            if claim is not None:
                seeds.setdefault((claim.tactic, axis), {})[value] = claim
                each.values[value] = None
    for (tactic, axis), claims in sorted(seeds.items(), key=lambda seed: seed[0][0]):
        for value, claim in claims.items():
            claim_layout(table, value, axis, claim)
        propagate(table, axis, claims, tactic, all(claim.held for claim in claims.values()))
    return with_claims(table, mesh_of(module), tactics_of_text(module))


def decided(module: ModuleOp) -> ModuleOp:
    """Makes the decisions from claims."""
    program, texts = _opened(module)
    return with_decisions(decide_all(read_claims(program, texts)), mesh_of(module), tactics_of_text(module))


def moved_again(module: ModuleOp) -> ModuleOp:
    """Finds the moves for where ops run and which sums they carry; the moves of the text are left out."""
    program, texts = _opened(module)
    placements, carried = read_placements(program, texts)
    return with_decisions(moved(Decisions(placements, carried, [], [], {}, {})), mesh_of(module), tactics_of_text(module))


def decisions_of(module: ModuleOp) -> Decisions:
    """The decisions that a module says."""
    program, texts = _opened(module)
    return read_decisions(program, texts, mesh_of(module))
