"""What the program says about layouts, and what became of it in a plan.

plan.annotations    h (_, model): applied;  w (data, expert): not applied, because the mesh has no axis `expert`
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...dialects.english import counted
from ...dialects.errors import Error, did_you_mean
from ...rewrites.decide.table import WHOLE
from ..inputs.lines import Source
from ..trace.annotations import Said
from .collectives import line_of
from .refusals import Seed
from .state import State

TACTIC = "Annotated("
"""How the text of the tactic begins that makes claims of annotations."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A layout that the program gives a value. `by` is what says so, and `state` what the plan made of it.

    `state` is `applied`, or `not applied` with the reason.
    """

    value: str
    layout: str
    by: str
    source: Source | None
    state: str

    @property
    def is_applied(self) -> bool:
        """Whether the value has this layout in the plan, by a tactic `pt.Annotated`."""
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


def seeds(plan: State, value: int, each: Said) -> Iterator[Seed]:
    """The claims that an annotation makes: of each dim on its axes, and whole along the axes that it does not name."""
    if each.problem:
        return
    name, axes = plan.source.addresses.names[value], plan.mesh.whole().axes
    named = {axis for dim in each.dims for axis in dim or ()}
    for dim, on in enumerate(each.dims):
        yield from (Seed(value, dim, axis, name) for axis in on or () if axis in axes)
    yield from (Seed(value, None, axis, name) for axis in each.axes if axis in axes and axis not in named)


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
    if not count or any(action.text.startswith(TACTIC) for action in plan.actions):
        return None
    return f"{counted(count, 'annotation')} of the program not applied: pt.Annotated()"


def _state(plan: State, value: int, each: Said) -> str:
    if each.problem:
        return f"not applied: {each.problem}"
    if missing := [axis for dim in each.dims for axis in dim or () if axis not in plan.mesh.whole().axes]:
        return f"not applied: the mesh {plan.mesh} has no axis `{missing[0]}`"
    if not any(action.text.startswith(TACTIC) for action in plan.actions):
        return "not applied: pt.Annotated() applies it"
    parts = (part for seed in seeds(plan, value, each) for part in seed.parts(plan.mesh))
    for seed in (part for part in parts if plan.mesh[part.axis] > 1):
        claim = plan.table.claim(value, seed.axis)
        if claim is None or claim.at != (WHOLE if seed.dim is None else seed.dim):
            by = "propagation" if claim is None else plan.actions[claim.tactic].text
            return f"not applied: {plan.layout_text(value)}, by {by}"
    return "applied"
