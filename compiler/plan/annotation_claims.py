"""Claims the layouts that a program gives its values, each exactly as the program says, with its axes in their order.

All are claimed before the first one propagates, so that propagation from one argument does not reorder the axes of another. A
constraint becomes a point of redistribution.

    c: (y, _), b: (x*y, _)   -->   c: f32[y*8, 4], b: f32[x*y*2, 4], whichever argument comes first
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...dialects.ranges.algebra import Place, major_to_minor
from ...rewrites.decide.constraints import carry_said, claims_of, is_point
from ...rewrites.decide.table import WHOLE, Claim, Table
from ...rewrites.program.program import ValueId
from ..gc_pause import without_collector
from ..trace.annotations import Said
from .annotation_outcomes import even
from .claims import Some, acted, is_same, new_claim, on_axes, on_parts, put, wanted
from .seeds import Seed, SeedOn
from .state import Action, State


def place_said(plan: Some, said: Sequence[tuple[ValueId, Said]], text: str, is_last: bool) -> Some:
    """Claims layouts as the program says, and propagates. Raises Error if a tactic has claimed another layout of a value.

    If these are the last of the program's layouts, ops that nothing has placed take what constraints leave them.
    """
    redo, number = partial(place_said, said=said, text=text, is_last=is_last), len(plan.actions)
    said = [(value, kept) for value, each in said if not (kept := even(plan, value, each)).says_nothing]
    wanted(plan, [seed for value, each in said for seed in seeds_of(plan, value, each)], text)
    said = [(value, each) for value, each in said if plan.source.addresses.has(value)]
    plan, seeds = on_parts(plan, [seed for value, each in said for seed in seeds_of(plan, value, each)])
    reconciles = (*(at for at, each in enumerate(plan.actions) if each.is_said), number) if is_last else ()
    action = Action(text, "place", dict.fromkeys(value for value, _ in said), is_said=True, reconciles=reconciles, redo=redo)
    with without_collector():
        table = on_axes(plan, None, lambda table: _claimed(plan, table, seeds, dict(said), action))
    return acted(plan, replace(action, idle=is_same(plan.table, table)), table)


def seeds_of(plan: State, value: ValueId, said: Said) -> Iterator[Seed]:
    """The claims of an annotation: each dim on its axes, and replicated along the axes that it excludes."""
    if said.problem:
        return
    said = even(plan, value, said)
    name, axes = plan.source.addresses.names[value], plan.mesh.whole().axes
    named = {axis for dim in said.dims for axis in dim or ()}
    for dim, on in enumerate(said.dims):
        yield from (Seed(value, dim, axis, name, said=True) for axis in on or () if axis in axes)
    others = (axis for axis in said.axes if axis in axes and axis not in named and axis not in plan.mesh.apart)
    yield from (Seed(value, None, axis, name, said=True) for axis in others)


def binds(plan: State, value: ValueId, said: Said) -> bool:
    """Whether an annotation says anything that a plan on this mesh can keep."""
    said = even(plan, value, said)
    return not said.problem and (() in said.dims or any(True for _ in seeds_of(plan, value, said)))


def _claimed(plan: State, table: Table, seeds: Sequence[SeedOn], said: Mapping[ValueId, Said], action: Action) -> Table:
    """A copy of a table with these layouts, propagated."""
    table, of, number = table.copy(), {value: list[SeedOn]() for value in said}, len(plan.actions)
    for seed in seeds:
        if seed.place.size > 1:
            of[seed.value].append(seed)
    axes = major_to_minor(seed.place for own in of.values() for seed in own)
    for axis in dict.fromkeys((*table.axes, *axes)):
        table.touch(axis)
    points: dict[ValueId, Mapping[Place, Claim]] = {}
    for value, own in of.items():
        closed = frozenset(dim for dim, on in enumerate(said[value].dims) if on is not None)
        _lay_out(plan, table, value, own, closed, action)
        if is_point(plan.source.program, value):
            points[value] = claims_of(table, value, {seed.place for seed in own})
    carry_said(table, points, axes, list(of), number, action.reconciles)
    return table


def _lay_out(
    plan: State, table: Table, value: ValueId, seeds: Sequence[SeedOn], closed: frozenset[int], action: Action
) -> None:
    """Claims the layout of one value. Claims that propagation made on its dims give way; claims of tactics stay."""
    named, number = {seed.place for seed in seeds}, len(plan.actions)
    dims = closed if is_point(plan.source.program, value) else {seed.dim for seed in seeds}
    before = {axis: (each.values[value], table.claim(value, axis)) for axis, each in table.axes.items()}
    asked = {axis for axis, (own, _) in before.items() if own is not None and value in plan.actions[own.tactic].values}
    for axis, (_, have) in before.items():
        if axis not in asked and have is not None and have.at != WHOLE and (axis in named or have.at in dims):
            table.axes[axis].values[value] = Claim(WHOLE, table.axes[axis].whole, number)

    def claims(axis: Place) -> Iterator[tuple[ValueId, Claim | None]]:
        for seed in (each for each in seeds if each.place is axis):
            new, (_, have) = new_claim(plan, table, seed, number, False, axis not in asked), before[axis]
            yield value, have if have is not None and new is not None and have[:2] == new[:2] else new

    put(table, dict.fromkeys(seed.place for seed in seeds), claims, action, number)
    table.closed[value] = frozenset(dim for dim in dims if dim is not None)
