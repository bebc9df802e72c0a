"""The layouts that a program asks for, and what a plan made of each.

plan.annotations    h (_, model): applied;  w (data, expert): altered to f32[data*16, 64]: the mesh data=4 has no axis `expert`
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error, did_you_mean
from ...dialects.layouts import Layout
from ...dialects.ranges.factor import Factor
from ...rewrites.program.program import ValueId
from ..inputs.lines import SourceLine, at_line
from ..inputs.message_language import Question, question, step
from ..trace.annotations import Said
from .source_lines import line_of
from .state import State


@dataclass(frozen=True, slots=True)
class Annotation:
    """A layout that the program asks for. `by` is the construct that asks, and `state` says what the plan made of it.

    `state` is `applied` if the value lies exactly so: each dim on these axes, in this order, and on no others. Otherwise it is
    `altered to` another layout with the reason, `refused` with the reason, or `not applied` because no tactic applied it.
    """

    value: str
    layout: str
    by: str
    source: SourceLine | None
    state: str

    @property
    def is_applied(self) -> bool:
        """Whether a tactic `pt.Annotated` has given the value exactly this layout."""
        return self.state == "applied"

    def __str__(self) -> str:
        return f"{self.value} ({self.layout}), by {self.by}{at_line(self.source)}: {self.state}"

    __repr__ = __str__


def annotations(plan: State) -> list[Annotation]:
    """The annotations of a program in program order, arguments first."""
    names = plan.source.addresses.names
    return [
        Annotation(names[value], str(each), each.by, line_of(plan, value, None), _state(plan, value, each))
        for value, each in of_program(plan)
    ]


def of_program(plan: State) -> Iterator[tuple[ValueId, Said]]:
    """Yields the values that have annotations, with these. Values that nothing reads are left out."""
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


def uneven_dims(plan: State, value: ValueId, said: Said) -> Mapping[int, str]:
    """The dims of a value that the axes of an annotation do not divide, each with the reason and a cure.

    A dim that a tactic has padded is left out, because it is on the axes.
    """
    found, whole = dict[int, str](), plan.mesh.whole()
    shape = plan.source.program.shape(value)
    for dim, on in enumerate(() if said.problem else said.dims):
        axes = [axis for axis in on or () if whole.axes.get(axis, 1) > 1]
        size, extent = prod(whole.axes[axis] for axis in axes), shape[dim]
        if (extent and extent % size == 0) or size == 1 or _lies(plan, value, dim, axes):
            continue
        given = axes[0] if len(axes) == 1 else tuple(axes)
        tiled = step(f"tile({plan.source.addresses.names[value]!r}, {dim}, {given!r}, padded=True)")
        padded = f"{tiled} before {step('Annotated()')}"
        found[dim] = (
            f"dim {dim} has {counted(extent, 'element')}, which {'does' if extent == 1 else 'do'} not divide over "
            f"`{'*'.join(axes)}` ({size} devices)"
            + (f"; make it {extent + -extent % size} long, or pad it: {padded}" if extent else "")
        )
    return found


def even(plan: State, value: ValueId, said: Said) -> Said:
    """The part of an annotation that a plan can keep.

    Dims that do not divide are left open; if no other dim has axes, nothing is kept.
    """
    open_ = uneven_dims(plan, value, said)
    if not open_:
        return said
    dims = tuple(None if dim in open_ else on for dim, on in enumerate(said.dims))
    axes = plan.mesh.whole().axes
    return replace(said, dims=dims if any(axis in axes for on in dims for axis in on or ()) else (), axes=())


def uneven_annotation(plan: State, said: Iterator[tuple[ValueId, Said]]) -> Error | None:
    """The error for the first of these annotations with a dim that does not divide; None if there is none."""
    for value, each in said:
        for reason in uneven_dims(plan, value, each).values():
            source, name = line_of(plan, value, None), plan.source.addresses.names[value]
            title, _, cure = reason.partition("; ")
            return Error(
                f"`{name}` cannot be tiled: {title}",
                location=source and source.location(),
                notes=[f"its shape is {list(plan.source.shape(value))}"],
                helps=[cure] if cure else [],
            )
    return None


def unapplied(plan: State) -> str | None:
    """A line for a plan's summary, if no tactic has applied the annotations, or if some of them do not divide.

    None if there are none.
    """
    count = sum(not each.problem for _, each in of_program(plan))
    if not count or any(action.is_said for action in plan.actions):
        return unkept(plan)
    wrong = misnamed(plan)
    return f"{counted(count, 'annotation')} of the program not applied: {step('Annotated()') if wrong is None else wrong.title}"


def unkept(plan: State) -> str | None:
    """A line about annotations that a tactic has applied, but with dims that do not divide; None if there are none."""
    if not any(action.is_said for action in plan.actions):
        return None
    found = [(value, reasons) for value, each in of_program(plan) if (reasons := uneven_dims(plan, value, each))]
    if not found:
        return None
    (value, reasons), *others = found
    name = plan.source.addresses.names[value]
    where = at_line(line_of(plan, value, None))
    more = f"; and {counted(len(others), 'other')}, see {question(Question.ANNOTATIONS)}" if others else ""
    return f"an annotation of the program is not kept: `{name}`{where}: {', and '.join(reasons.values())}{more}"


def _state(plan: State, value: ValueId, said: Said) -> str:
    """What a plan made of an annotation: `applied`, `not applied`, `altered to` or `refused`, with the reason."""
    if said.problem:
        return f"refused: {said.problem}"
    named = [axis for dim in said.dims for axis in dim or ()]
    missing = [axis for axis in named if axis not in plan.mesh.whole().axes]
    lacks = f"the mesh {plan.mesh.whole()} has no axis `{missing[0]}`" if missing else ""
    if missing == named != []:
        return f"refused: {lacks}"
    reasons = ", and ".join(uneven_dims(plan, value, said).values())
    if reasons and even(plan, value, said).says_nothing:
        return f"refused: {reasons}"
    if not any(action.is_said and value in action.values for action in plan.actions):
        return f"not applied: {step('Annotated()')} applies it"
    layout = plan.table.layout(value)
    # An argument comes in blocks, in whatever order the program has its rows.
    layout = layout.natural if plan.source.program.producer[value] < 0 else layout
    by = _departs(plan, value, said, layout)
    why = lacks or reasons or by
    return f"altered to {plan.layout_text(value, layout)}: {why}" if why else "applied"


def _departs(plan: State, value: ValueId, said: Said, layout: Layout) -> str:
    """The reason why a value has another layout than the program asks for; empty if it has that layout."""
    for dim, on in enumerate(said.dims):
        wanted = _wanted(plan, value, dim, on or ())
        # A dim of an argument that no axis tiles is open.
        if on is not None and (wanted or plan.source.program.producer[value] >= 0) and (other := wanted ^ set(layout.at(dim))):
            claims = (plan.table.claim(value, factor.axis) for factor in other)
            tactics = [claim.tactic for claim in claims if claim is not None]
            return f"by {plan.cited(max(tactics))}" if tactics else "it cannot be tiled so"
    return ""


def _wanted(plan: State, value: ValueId, dim: int, on: Sequence[str]) -> set[Factor]:
    """The factors of a dim that lies on these axes in one block on each device, with padding if they do not divide it."""
    axes = [part for each in on if plan.mesh.parts(each, ()) for part in plan.mesh.named(each) if part.size > 1]
    block, found = -(-plan.source.program.shape(value)[dim] // prod(axis.size for axis in axes)), set[Factor]()
    for axis in reversed(axes):
        found.add(Factor(axis, block))
        block *= axis.size
    return found


def _lies(plan: State, value: ValueId, dim: int, axes: Sequence[str]) -> bool:
    """Whether the dim already lies on these axes, perhaps padded."""
    return _wanted(plan, value, dim, axes) == set(plan.table.layout(value).at(dim))
