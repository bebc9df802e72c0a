"""A plan's device-local module made from text, and the results of that module."""

from collections.abc import Sequence
from typing import Any, cast

from jaxpr_collectives import KINDS
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from partita.compiler.api.plan import Plan
from partita.compiler.plan import lowering
from partita.dialects import context, lax, spmd
from partita.dialects.program_text import read_module
from partita.dialects.reference.interpret import run_devices
from partita.dialects.reference.lockstep import collect, distribute
from partita.dialects.types import ArrayType
from partita.rewrites.lower.fuse import fuse
from partita.rewrites.lower.materialise import materialise
from partita.rewrites.lower.to_spmd import Local, to_spmd
from partita.rewrites.plan_text import stages


def parse(text: str) -> ModuleOp:
    return read_module(context(), text)


def reparsed(text: str) -> ModuleOp:
    """The module of a printed text, which must be complete, print the same again, and be that of a valid module."""
    read = parse(text)
    read.verify()
    assert str(read) == text
    return read


def lowers_from_its_text(plan: Plan) -> None:
    """The rules make the plan's spmd module from the text of the unfused program too; each text between is read and printed."""
    fused, own, local = str(fuse(reparsed(str(plan.ir(fused=False))))), str(plan.ir()), str(plan.spmd())
    # Nearly always these have the same text, which is read only once then.
    if own != fused:
        reparsed(own)
    assert str(to_spmd(reparsed(fused))) == local
    reparsed(local)


def lowers_from_its_decisions(plan: Plan) -> None:
    """The text of the plan's claims gives that of its decisions, and that one the plan's spmd module."""
    decided = str(lowering.decisions(plan))
    assert str(stages.decided(reparsed(str(lowering.claims(plan))))) == decided
    read = stages.decisions_of(reparsed(decided))
    said = [sum(move.is_said for move in each.moves) for each in (read, plan.decided.decisions)]
    assert said[0] == said[1], "every other path is the cheapest, though read from its text"
    assert _main(materialise(read, Local)) == _main(plan.spmd())


def _main(module: ModuleOp) -> str:
    return str(module.body.block.first_op)


def executions(module: ModuleOp) -> tuple[dict[str, int], dict[str, int]]:
    """How often each kind of collective runs in the device-local module: always, and in branches, whichever branch runs.

    The body of a loop counts once per trip, and once if the trip count is unknown.
    """
    always, branches = (dict.fromkeys(KINDS.values(), 0) for _ in range(2))

    def walk(op: Operation, times: int, found: dict[str, int]) -> None:
        kind = op.name.removeprefix("spmd.")
        if isinstance(op, spmd.Collective) and kind in found:
            found[kind] += times
        trips = cast(int, op.params["length"]) if isinstance(op, lax.ScanOp) else 1
        for region in op.regions:
            for inner in region.block.ops:
                walk(inner, times * trips, branches if isinstance(op, lax.CondOp) else found)

    walk(module, 1, always)
    return always, branches


def interpreted(plan: Plan, args: Sequence[Any]) -> list[Any]:
    """The results of the plan's device-local module, on all devices in lockstep."""
    placed = plan.ir()
    types = cast(FuncOp, placed.body.block.first_op).function_type
    ins, outs = (cast("Sequence[ArrayType]", side.data) for side in (types.inputs, types.outputs))
    held = [distribute(arg, type.layout, plan.mesh.size) for arg, type in zip(args, ins, strict=True)]
    results = run_devices(cast(FuncOp, to_spmd(placed).body.block.first_op), held, plan.mesh.size)
    return [collect(value, type.layout, plan.mesh.size) for value, type in zip(results, outs, strict=True)]
