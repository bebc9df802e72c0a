"""The history of a plan: the plans after none of its tactics, after the first, and so on, up to itself.

A plan stores its tactics, not the plans before it. These are made again when they are first needed, which takes as long as the
tactics took, and are then kept with their caches.

    DataParallel(...), Megatron(...)   -->   [nothing placed, after DataParallel, the plan itself]

`redone` applies the tactics again, with other steps among them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from ...dialects.ground.errors import Error
from ...dialects.mesh import Mesh
from ...rewrites.decide.table import Table
from ...rewrites.program.flatten import flatten
from ..gc_pause import without_collector
from .claims import Some, of_program, place_own
from .state import State


def prefixes(plan: Some) -> Sequence[Some]:
    """The plans after 0, 1, ... of the plan's tactics. The last one is the plan itself.

    Where a tactic cannot be applied again as it was, because it came to be in another order, the plans between the first and
    the last one are left out.
    """
    return [*plan.once(_before), plan]


def _before(plan: Some) -> Sequence[Some]:
    """The history without the plan itself, which caches it."""
    first = without_tactics(plan)
    found = [first]
    for action in plan.actions[plan.own :]:
        if action.redo is None:
            return [first]
        try:
            found.append(cast(Some, action.redo(found[-1])))
        except Error:
            return [first]
    return found[:-1] if _same(found[-1], plan) else [first]


def redone(
    plan: Some, number: int, steps: Sequence[Callable[[State], State]], *, keeps: bool, mesh: Mesh | None = None
) -> Some:
    """Replays the plan with these steps in place of action `number` or, with `keeps`, before it; perhaps on another mesh.

    Raises Error for a step that is refused, and if an action cannot be applied again.

        [tile('x', 0, 'data')], replicate('y', 'data') before the first   -->   [replicate('y', 'data'), tile('x', 0, 'data')]
    """
    made: State = without_tactics(plan, mesh)
    again = [each.redo for each in plan.actions]
    again[number : number if keeps else number + 1] = steps
    for step in again[plan.own :]:
        if step is None:
            raise Error("a tactic of the plan cannot be applied again")
        made = step(made)
    return cast(Some, made)


def without_tactics(plan: Some, mesh: Mesh | None = None) -> Some:
    """The plan of the program as it was traced, with only the program's own claims; perhaps on another mesh."""
    source, mesh = plan.source, mesh or plan.source.mesh
    if source.root is not source.traced:
        return of_program(plan, source.root, mesh)
    if mesh is not source.mesh:
        with without_collector():
            program = flatten(source.traced.module, mesh)
        source = replace(source, program=program, addresses=source.addresses.everywhere)
    return place_own(replace(plan, source=source, mesh=mesh, table=Table(source.program), actions=(), labels={}))


def _same(left: State, right: State) -> bool:
    """Whether two plans have the same placements, by the same tactics."""
    return _placed(left) == _placed(right)


def _placed(plan: State) -> object:
    axes = {axis: (table.nodes, table.values) for axis, table in plan.table.axes.items()}
    sets = plan.table.sets
    return plan.mesh, axes, plan.table.widened, plan.table.each_trip, sets and sets.claims
