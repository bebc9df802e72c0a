"""A plan that follows another one: of a derivative, or of the program under `vmap`.

Its values are kin to values of that plan, in its arguments and results and in its tags: each tactic claims for them what it
claimed there, and these claims are propagated as they were.

    x: f32[data*64, 8] by tactic 0   -->   x, its tangent and its cotangent: f32[data*64, 8] by tactic 0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...rewrites.decide.propagate import propagate as carry
from ...rewrites.decide.table import WHOLE, Claim, Table
from ..ops.tag import cotangent_name
from .claims import Action

if TYPE_CHECKING:
    from ..api.plan import Plan


class Kin(NamedTuple):
    """A value of another plan that one is laid out as; `dims` says which dim of this one each of its dims is."""

    table: Table
    value: int
    dims: tuple[int, ...]

    def claim(self, axis: str, tactic: int) -> Claim | None:
        """What a tactic claimed there."""
        found = self.table.claim(self.value, axis)
        if found is None or found.tactic != tactic:
            return None
        return found if found.at == WHOLE else found._replace(at=self.dims[found.at])


def place_kin(plan: Plan, kin: Mapping[int, Kin], tactic: int, action: Action) -> Table:
    """The plan's table with the claims that a tactic made on the kin of its values, and what follows from them."""
    table = plan.table.copy()
    for axis in plan.mesh.axes:
        claims = {value: claim for value, other in kin.items() if (claim := other.claim(axis, tactic))}
        new = {value: claim for value, claim in claims.items() if _fits(table, value, axis, claim)}
        again = any(seed.value < 0 and seed.axis == axis for seed in action.seeds)
        old = [value for value in range(len(plan.source.program.types)) if table.claim(value, axis)] if again else []
        if not new and not old:
            continue
        touched = table.touch(axis)
        for value, claim in new.items():
            touched.values[value] = claim
        if action.propagate:
            carry(table, axis, [*new, *old], tactic, action.held)
    return table


def _fits(table: Table, value: int, axis: str, claim: Claim) -> bool:
    """Whether the value has room for the claim: an earlier tactic may have carried others here."""
    if table.claim(value, axis) is not None:
        return False
    return claim.at == WHOLE or table.fits_value(value, axis, claim.at, claim.stride)


def tagged(root: Plan, plan: Plan) -> dict[int, Kin]:
    """The kin of tagged values, and of their tangents and cotangents: the values of that tag that tactics of `root` placed."""
    found: dict[int, Kin] = {}
    inside, shape = root.source.addresses.inside, root.source.program.shape
    for seed in (seed for action in root.actions for seed in action.seeds if seed.value >= 0):
        name = root.source.addresses.names[seed.value]
        own = inside.get(name, [])
        for each in (name, f"tangent({name})", cotangent_name(name)) if seed.value in own else ():
            there = plan.source.addresses.inside.get(each, [])
            for value in [there[own.index(seed.value)]] if len(there) == len(own) else there:
                more = len(plan.source.program.shape(value)) - len(shape(seed.value))
                if plan.source.program.shape(value)[max(more, 0) :] == shape(seed.value):
                    found[value] = Kin(root.table, seed.value, tuple(range(more, more + len(shape(seed.value)))))
    return found
