"""Lowers a plan: writes its decisions as a placed program, as a device-local module, or as a graph."""

from contextlib import suppress
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from ...dialects.array import set_mesh
from ...rewrites.decide.decide import Decisions
from ...rewrites.lower.constructors import Fusing, Plain
from ...rewrites.lower.first_lines import beginning
from ...rewrites.lower.materialise import Start, materialise
from ...rewrites.lower.to_spmd import Local
from ...rewrites.plan_text.claims import with_claims
from ...rewrites.plan_text.decisions import with_decisions
from ..define.verify_in_plan import try_block_sizes
from ..gc_pause import without_collector
from .refusals import not_whole
from .state import State


def claims(plan: State) -> ModuleOp:
    """The program with the claims of the plan as attributes: for people to read, and for `partita-opt`."""
    return with_claims(plan.table, plan.mesh, _tactics(plan))


def decisions(plan: State) -> ModuleOp:
    """The program with the decisions of the plan as attributes: for people to read, and for `partita-opt`."""
    return with_decisions(decided(plan), plan.mesh, _tactics(plan))


def _tactics(plan: State) -> list[str]:
    return [action.said for action in plan.actions]


def ir(plan: State, fused: bool = True) -> ModuleOp:
    """The placed builders and slicers: claims --> decisions --> one nest for each kernel."""
    return lowered(plan, Fusing if fused else Plain)


def spmd(plan: State) -> ModuleOp:
    """The device-local module: claims --> decisions --> kernels with explicit collectives.

    Raises Error for a plan on several device sets.
    """
    if problem := not_whole(plan, "an SPMD program"):
        raise problem
    return lowered(plan, Local)


def lowered(plan: State, constructor: Start) -> ModuleOp:
    """Writes a plan's decisions by a constructor."""
    with without_collector():
        module = materialise(decided(plan), constructor)
        mesh, is_placed = plan.decided.mesh, constructor in (Fusing, Plain)
        if plan.table.sets is None or is_placed:
            set_mesh(module, mesh if is_placed else mesh.in_space)
        return module


def decided(plan: State) -> Decisions:
    """The plan's decisions, after ops with their own block sizes have been tried in them."""
    try_block_sizes(plan.decisions.placements, plan.source.traced.foreign)
    return plan.decisions


def first_lines(plan: State, most: int) -> tuple[list[str], bool]:
    """The first lines of the text of `spmd`, and whether they are all. A long program is lowered only that far."""
    if problem := not_whole(plan, "an SPMD program"):
        raise problem
    with without_collector():
        # A product and its transpose become one op.
        module, is_whole = beginning(decided(plan), 2 * most)
        set_mesh(module, plan.decided.mesh)
        return (str(module).splitlines(), True) if is_whole else (_printed(module, most), False)


def _printed(module: ModuleOp, most: int) -> list[str]:
    """Prints the first lines of a module's text."""
    page = _Page(most)
    with suppress(_Full):
        Printer(stream=page).print_op(module)
    return page.getvalue().splitlines()[:most]


class _Full(Exception):
    """Raised when a page has all its lines."""


class _Page(StringIO):
    """A stream that takes the first lines of a text, then stops the printer."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def write(self, text: str) -> int:
        if self.left <= 0:
            raise _Full
        self.left -= text.count("\n")
        return super().write(text)
