"""What a program says about layouts, as a tactic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....dialects.errors import Error
from ...inputs.names import Patterns
from ...plan.annotations import misnamed, of_program, seeds
from ...plan.claims import Seed
from ..plan import Plan
from .base import Tactic


@dataclass(frozen=True, repr=False)
class Annotated(Tactic):
    """Lay values out as the program says: constraints, shardings of arguments, metadata of models (`plan.annotations`).

    It takes the annotations of the values that `values` matches, in the order of the program. Those of stored arguments, which
    a result replaces in the next call (`plan.successors`), come last: where such an argument and the batch need the same axis,
    the argument is gathered for its use, as with ZeRO. So it is two lines in the trace, with `stored` False and True.
    An axis that the mesh does not have is left out and listed in `plan.annotations`.

    Raises Error if the program has no annotations, and for a dim that does not divide.

        h = with_sharding_constraint(x @ w, P("data", "model"))   -->   h: f32[data*64, model*512], and what follows
    """

    values: Patterns = "**"
    stored: bool | None = None

    def __call__(self, plan: Plan) -> Plan:
        if self.stored is None:
            sides = [replace(self, stored=stored) for stored in (False, True)]
            if not any(True for side in sides for _ in side.seeds(plan)):
                raise misnamed(plan) or self.nothing(plan)
            for side in sides:
                plan = side(plan) if any(True for _ in side.seeds(plan)) else plan
            return plan
        return super().__call__(plan)

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        wanted, said = set(plan.source.addresses.find(self.values).values()), set[int]()
        everything, replaced = self.values == "**", plan.source.replaced
        for value, each in of_program(plan):
            if value not in said and (everything or value in wanted) and self.stored in (None, value in replaced):
                # Of one value, what is said first counts; the shardings of arguments come before those of calls.
                said.add(value)
                yield from (replace(seed, stored=value in replaced) for seed in seeds(plan, value, each))

    def nothing(self, plan: Plan) -> Error:
        """The error for a program that says nothing of these values that the mesh can follow."""
        helps = ["`plan.annotations` lists what it says", 'write pt.constrain(x, "data, _"), or with_sharding_constraint']
        of = "" if self.values == "**" else f" of {self.values!r}"
        return Error(f"the program has no annotations{of} that name an axis of {plan.mesh}", helps=helps)
