"""What the program says about layouts, and what became of it in a plan.

plan.annotations    h (_, model): applied;  w (data, expert): altered to f32[data*16, 64]: the mesh data=4 has no axis `expert`
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...dialects.english import counted
from ...dialects.errors import Error, did_you_mean
from ...dialects.layouts import Layout
from ...dialects.ranges.factor import Factor, place_of
from ..inputs.lines import Source
from ..inputs.reader import step
from ..trace.annotations import Said
from .collectives import line_of
from .state import State


@dataclass(frozen=True, slots=True)
class Annotation:
    """A layout that the program gives a value. `by` is what says so, and `state` what the plan made of it.

    `state` is `applied` if the value lies exactly so: each dim on these axes, in this order, and on no others. Otherwise it is
    `altered to` another layout with the reason, `refused` with the reason, or `not applied` because no tactic applied it.
    """

    value: str
    layout: str
    by: str
    source: Source | None
    state: str

    @property
    def is_applied(self) -> bool:
        """Whether the value has exactly this layout in the plan, by a tactic `pt.Annotated`."""
        return self.state == "applied"

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source is not None else ""
        return f"{self.value} ({self.layout}), by {self.by}{where}: {self.state}"

    __repr__ = __str__


def annotations(plan: State) -> list[Annotation]:
    """The annotations of the program, in the order of the program, arguments first."""
    names = plan.source.addresses.names
    return [
        Annotation(names[value], str(each), each.by, line_of(plan, value, None), _state(plan, value, each))
        for value, each in of_program(plan)
    ]


def of_program(plan: State) -> Iterator[tuple[int, Said]]:
    """The values that have annotations, and these; values that nothing reads are not in the program."""
    numbers = plan.source.program.numbers
    return ((numbers[value], said) for value, said in plan.source.traced.annotations if value in numbers)


def misnamed(plan: State) -> Error | None:
    """The error for the first annotation that names an axis which the mesh does not have; None if there is none."""
    for value, each in of_program(plan):
        axes = (axis for dim in each.dims for axis in dim or () if axis not in plan.mesh.whole().axes)
        if (axis := next(axes, None)) is not None:
            source, name = line_of(plan, value, None), plan.source.addresses.names[value]
            title = f"`{axis}` is no axis of {plan.mesh}: {each.by} lays `{name}` out as ({each})"
            helps = did_you_mean(axis, plan.mesh.whole().axes, f"the mesh has {', '.join(plan.mesh.whole().axes)}")
            return Error(title, location=source and source.location(), helps=helps)
    return None


def unapplied(plan: State) -> str | None:
    """A line for the summary of a plan to whose program's annotations no tactic was applied; None if there are none."""
    count = sum(not each.problem for _, each in of_program(plan))
    if not count or any(action.is_said for action in plan.actions):
        return None
    return f"{counted(count, 'annotation')} of the program not applied: {step('Annotated()')}"


def _state(plan: State, value: int, said: Said) -> str:
    """What the plan made of a layout that the program gives a value."""
    if said.problem:
        return f"refused: {said.problem}"
    named = [axis for dim in said.dims for axis in dim or ()]
    missing = [axis for axis in named if axis not in plan.mesh.whole().axes]
    lacks = f"the mesh {plan.mesh.whole()} has no axis `{missing[0]}`" if missing else ""
    if missing == named != []:
        return f"refused: {lacks}"
    if not any(action.is_said and value in action.values for action in plan.actions):
        return f"not applied: {step('Annotated()')} applies it"
    layout = plan.table.layout(value)
    # An argument comes in blocks, in whatever order the program has its rows.
    layout = layout.natural(plan.mesh) if value in plan.source.program.arguments else layout
    by = _departs(plan, value, said, layout)
    return f"altered to {plan.layout_text(value, layout)}: {lacks or by}" if missing or by else "applied"


def _departs(plan: State, value: int, said: Said, layout: Layout) -> str:
    """What gives a value another layout than the program does; nothing if it has that one."""
    for dim, on in enumerate(said.dims):
        wanted, block = set[Factor](), plan.source.program.shape(value)[dim]
        for axis in (part for each in on or () for part in plan.mesh.parts(each, ()) if plan.mesh[part] > 1):
            block //= plan.mesh[axis]
            wanted.add(Factor(place_of(axis), plan.mesh[axis], block))
        # A dim of an argument that no axis tiles is open.
        if (
            on is not None
            and (wanted or value not in plan.source.program.arguments)
            and (other := wanted ^ set(layout.at(dim, plan.mesh)))
        ):
            claims = (plan.table.claim(value, factor.name) for factor in other)
            tactics = [claim.tactic for claim in claims if claim is not None]
            return f"by {plan.cited(max(tactics))}" if tactics else "it cannot be tiled so"
    return ""
