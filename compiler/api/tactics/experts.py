"""Expert parallelism: tokens travel to the devices that hold their experts, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ....dialects.ground.errors import Error
from ....rewrites.program.program import ValueId
from ...structure.products import Passes
from ..plan import Plan
from .base import DimsByName, Structural


@dataclass(frozen=True, repr=False)
class ExpertParallel(Structural):
    """Tile the experts over an axis that also tiles the tokens: tokens travel to their experts, and back (arXiv 2006.16668).

    `experts` are the parameters whose leading dim is the experts; a mapping from pattern to dim overrides this. Without it they
    are found from structure: their products share a range with the tokens that they multiply, and keep it. Ops in which
    every array has the experts dim take the axis there: forward, backward and in the optimizer. Dispatch and combine, which
    also have the tokens, are left to the tactic that places the tokens. Apply this tactic first: the earlier one decides.

    A layer has 2 all_to_alls forward and 2 backward. Raises Error if no parameters are experts, and if an earlier tactic has
    placed the ops that read them.

        ExpertParallel("data", experts="params/experts"), DataParallel("data", inputs="batch/*"):
            sent: f32[8, data*2, 16, 64]   -->   f32[data*1, 16, 16, 64] at the experts: an all_to_all before and one after them
    """

    experts: DimsByName = ()
    holds: ClassVar[bool] = True
    named: ClassVar[Mapping[str, int]] = {"experts": 0}

    def found(self, plan: Plan) -> Iterable[tuple[ValueId, int]]:
        spots = Passes(plan).shared()
        if not spots:
            notes = ["their products share a range with the tokens that they multiply, and keep it: `ecm,emf->ecf`"]
            helps = ['say which parameters lead with them: experts="**/experts"']
            raise Error("`ExpertParallel` finds no experts", notes=notes, helps=helps)
        return spots

    def problem(self, plan: Plan, placed: Plan) -> Error | None:
        """The error if no op takes the experts, because an earlier tactic has already placed all ops that read them."""
        if placed.mesh[self.axis] == 1:
            return None
        seeds, program, nodes = (
            list(self.seeds(plan)),
            plan.source.program,
            placed.table.axes[placed.mesh.named(self.axis)[0]].nodes,
        )
        claims = [nodes[number] for seed in seeds for number, _ in program.uses[seed.value]]
        before = {claim.tactic: None for claim in claims if claim is not None and not claim.held}
        if before and not any(claim is not None and claim.held for claim in claims):
            by = plan.actions[next(iter(before))].said
            title = f"the ops that read `{seeds[0].name}` are already tiled on `{self.axis}`, by {by}"
            return Error(title, helps=["apply `ExpertParallel` before it: the earlier tactic decides", "or use another axis"])
        return None
