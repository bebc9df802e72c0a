"""All data of a page: the program once, and a step for each of the plan's tactics.

Texts, source lines and layouts are written once. A step has the layouts that differ from those of the step before.
"""

from collections.abc import Sequence

from ..plan.prefixes import prefixes
from ..plan.state import State
from .placed import Kept, changes, layout_numbers, layouts_pool
from .pool import Json, Pool, Pools
from .program import program_json
from .step import step_json


def data(plan: State) -> Json:
    """The data of a plan and of the plans on the way to it."""
    pools, layouts, steps = Pools(), layouts_pool(), prefixes(plan)
    program = program_json(plan, pools)
    own = len(steps[0].actions)
    found = [step_json(step, own, step is plan, pools) for step in steps]
    placed = _layouts(steps, layouts)
    return {
        "name": plan.source.traced.name,
        "mesh": [list(pair) for pair in plan.mesh.whole().axes.items()],
        "whole": len(steps) == len(plan.actions) - own + 1,
        "successors": dict(plan.source.traced.successors),
        "program": program,
        "steps": [{**step, "layouts": each} for step, each in zip(found, placed, strict=True)],
        "layouts": layouts.items,
        "texts": pools.texts.items,
        "lines": pools.lines.items,
    }


def _layouts(steps: Sequence[State], pool: Pool[Kept]) -> list[Json]:
    before = [-1] * len(steps[0].source.program.types)
    found: list[Json] = []
    for step in steps:
        after = layout_numbers(step, pool)
        found.append(changes(before, after))
        before = after
    return found
