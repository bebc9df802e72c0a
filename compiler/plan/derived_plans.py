"""Plans that follow another plan: that of a derivative, or of the program under `vmap`.

Its arguments, results and tagged values are kin to values of that plan. Each tactic makes the same claims for them as it
made there, and these claims are propagated in the same way.

    x: f32[data*64, 8] by tactic 0   -->   x, its tangent and its cotangent: f32[data*64, 8] by tactic 0
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...dialects.ground.errors import Error
from ...dialects.ranges.algebra import Place
from ...rewrites.decide.constraints import carry_said, claims_of, is_point
from ...rewrites.decide.table import WHOLE, Claim, Table, next_factor, produced
from ...rewrites.program.program import ValueId
from ..ops.tag import cotangent_name
from ..trace.trace import Traced
from .claims import place_own, put
from .state import Action, State


class Kin(NamedTuple):
    """A value of another plan whose layout a value adopts. `dims` maps its dims to those of the adopting value."""

    table: Table
    value: ValueId
    dims: tuple[int, ...]

    def claim(self, axis: Place, tactic: int) -> Claim | None:
        """The claim that a tactic made on the value, translated to the adopting value's dims; None if it made none."""
        found = self.table.claim(self.value, axis)
        if found is None or found.tactic != tactic:
            return None
        return found if found.at == WHOLE else found._replace(at=self.dims[found.at])

    def moved(self, axis: Place) -> bool:
        """Whether a tactic placed the value on another dim of the axis than the value's op does."""
        table = self.table.axes[axis]
        claim, made = table.values[self.value], produced(self.table.program, table, self.value)
        return claim is not None and made is not None and made.at != claim.at


def follow(root: State, traced: Traced, ends: Sequence[Kin | None]) -> State:
    """Plans a program by the tactics of `root`. Its arguments, then its results, adopt the layouts of `ends`.

    If a tactic places a tagged value, the program's values of that tag, their tangents and cotangents follow too.
    """
    plan = place_own(State.start(traced, root.mesh))
    plan.table.may_split, program = False, plan.source.program
    values = (*program.arguments[: len(traced.in_avals)], *program.returned)
    kin = _tagged(root, plan) | {value: other for value, other in zip(values, ends, strict=True) if other is not None}
    plan.table.each_trip |= {v for v, other in kin.items() if other.value in root.table.each_trip and v in program.arguments}
    for number, action in enumerate(root.actions):
        plan = replace(plan, table=placed_as(plan, kin, number, action))
    return replace(plan, actions=root.actions)


def placed_as(plan: State, kin: Mapping[ValueId, Kin], tactic: int, action: Action) -> Table:
    """The plan's table with the claims that one tactic made on the kin of its values, propagated as there."""
    table, touched, again = plan.table.copy(), list[Place](), plan.mesh.parts(action.again, ())

    def claims(axis: Place) -> Iterator[tuple[ValueId, Claim | None]]:
        found: dict[ValueId, Claim | None] = {}
        if str(axis) in again:
            found |= {value: None for value in plan.source.program.values if table.claim(value, axis)}
        for value, other in kin.items():
            if (claim := other.claim(axis, tactic)) is not None:
                claim = _in_trips(plan, table, value, axis, claim, other)
                if _fits(table, value, axis, claim, other):
                    found[value] = claim
        if found:
            table.touch(axis)
            touched.append(axis)
        yield from found.items()

    put(table, plan.mesh.places, claims, action, tactic)
    if action.is_said:
        # What the program says of one axis may place ops on another one.
        for axis in table.axes:
            table.touch(axis)
        points: dict[ValueId, Mapping[Place, Claim]] = {}
        for value, other in kin.items():
            if is_point(plan.source.program, value) and is_point(other.table.program, other.value):
                number = other.table.program.producer[other.value]
                points[value] = claims_of(table, value, [axis for axis, of in other.table.axes.items() if number in of.points])
            table.closed[value] = frozenset(other.dims[dim] for dim in other.table.closed.get(other.value, ()))
        carry_said(table, points, touched, list(kin), tactic, action.reconciles)
    return table


def _in_trips(plan: State, table: Table, value: ValueId, axis: Place, claim: Claim, kin: Kin) -> Claim:
    """Adapts a claim to loop trips, if this program splits the dim into the trips of a loop and the other one does not.

    An argument that a result replaces is stored as it was.
    """
    if claim.at == WHOLE or value in plan.source.replaced:
        return claim
    extent = kin.table.program.shape(kin.value)[kin.dims.index(claim.at)]
    if plan.source.program.shape(value)[claim.at] != extent:
        return _smaller(plan, table, value, axis, claim, padded=claim.factor.span > extent)
    trip = plan.source.classes.in_a_trip(value, claim.at) if plan.source.program.has_regions else None
    if trip is None or trip % axis.size or table.claim(value, axis) is not None:
        return claim
    factor = next_factor(table, value, claim.at, axis, 0, trip)
    return claim if factor is None else claim._replace(factor=factor)


def _smaller(plan: State, table: Table, value: ValueId, axis: Place, claim: Claim, padded: bool) -> Claim:
    """Adapts a claim to a value that is a part of its kin, in one trip. Raises Error if the axis does not divide the part."""
    factor = next_factor(table, value, claim.at, axis, axis.size if padded else 0)
    if factor is None:
        name, extent = plan.source.addresses.names[value], plan.source.program.shape(value)[claim.at]
        title = f"`{name}` cannot be tiled: in a trip its dim {claim.at} has {extent} elements, which `{axis}` does not divide"
        raise Error(title, helps=[f"take fewer trips, so that each has a multiple of {axis.size}", "or another dim"])
    return claim._replace(factor=factor)


def _fits(table: Table, value: ValueId, axis: Place, claim: Claim, kin: Kin) -> bool:
    """Whether a claim fits a value. An earlier tactic may have propagated another claim to it."""
    have = table.claim(value, axis)
    if have is not None and (have.at == claim.at or not kin.moved(axis) or table.axes[axis].values[value] is not None):
        return False
    return claim.at == WHOLE or table.fits_value(value, claim.at, claim.factor)


def _tagged(root: State, plan: State) -> dict[ValueId, Kin]:
    """The kin of tagged values and of their tangents and cotangents: the values with that tag that tactics of `root` placed."""
    found: dict[ValueId, Kin] = {}
    inside, shape = root.source.addresses.inside, root.source.program.shape
    for placed in (value for action in root.actions for value in action.values):
        name = root.source.addresses.names[placed]
        own = inside.get(name, [])
        for each in (name, f"tangent({name})", cotangent_name(name)) if placed in own else ():
            there = plan.source.addresses.inside.get(each, [])
            for value in [there[own.index(placed)]] if len(there) == len(own) else there:
                more = len(plan.source.program.shape(value)) - len(shape(placed))
                if plan.source.program.shape(value)[max(more, 0) :] == shape(placed):
                    found[value] = Kin(root.table, placed, tuple(range(more, more + len(shape(placed)))))
    return found
