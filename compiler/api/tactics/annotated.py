"""`Annotated`: follows the layouts that the program itself asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from ....dialects.ground.errors import Error
from ....rewrites.program.program import ValueId
from ...inputs.message_language import Question, question
from ...inputs.names import Patterns
from ...plan.annotation_claims import binds, place_said, seeds_of
from ...plan.annotation_outcomes import misnamed, of_program, uneven_annotation
from ...plan.seeds import Seed
from ...plan.state import State
from ...trace.annotations import Said
from ..plan import Plan
from .base import Tactic


@dataclass(frozen=True, repr=False)
class Annotated(Tactic):
    """Lay values out as the program says: constraints, shardings of arguments, metadata of models (`plan.annotations`).

    It takes the annotations of the values that `values` matches: first those of arguments, then constraints. Those of stored
    arguments, which a result replaces in the next call (`plan.successors`), come after both: where such an argument and the
    batch need the same axis, the argument is gathered for its use, as with ZeRO. So it is two lines in the trace, with `stored`
    False and True.

    A value has one layout before a constraint and may have another one after it. What is before takes the constraint's layout
    if nothing else claims it. Where constraints ask an op for several layouts, it takes the one that costs least.
    It sees the constraints of this tactic and of earlier ones: give those that meet at an op to one `Annotated`, not to two.
    An axis that the mesh does not have is left out; `plan.annotations` lists what became of each annotation.

    A dim that does not divide is left open, and an annotation that lays out no other dim is refused.

    Raises Error if none of the annotations is left.

        h = with_sharding_constraint(x @ w, P("data", "model"))   -->   h: f32[data*64, model*512], and what follows
    """

    values: Patterns = "**"
    stored: bool | None = None

    def __call__(self, plan: Plan) -> Plan:
        if self.stored is not None:
            is_last = self.stored or not any(True for _ in replace(self, stored=True).said(plan))
            return place_said(plan, list(self.said(plan)), repr(self), is_last).by(cast("Callable[[State], State]", self))
        if not any(binds(plan, *each) for each in self.said(plan)):
            raise misnamed(plan) or uneven_annotation(plan, self.said(plan)) or self.nothing(plan)
        has, sides = plan.source.addresses.has, [replace(self, stored=stored) for stored in (False, True)]
        return plan.apply(*([side for side in sides if any(has(value) for value, _ in side.said(plan))] or sides))

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        return (seed for each in self.said(plan) for seed in seeds_of(plan, *each))

    def said(self, plan: Plan) -> Iterator[tuple[ValueId, Said]]:
        """Yields the values that it lays out, and how.

        Of an argument's annotations the first counts: its sharding, then metadata.
        """
        wanted, known = set(plan.source.addresses.find(self.values).values()), set[ValueId]()
        everything, replaced = self.values == "**", plan.source.replaced
        for value, each in of_program(plan):
            is_mine = (everything or value in wanted) and self.stored in (None, value in replaced)
            if is_mine and not each.problem and value not in known:
                known.add(value)
                yield value, each

    def nothing(self, plan: Plan) -> Error:
        """The error for a program that has no annotations of these values which this mesh can follow."""
        helps = [
            f"{question(Question.ANNOTATIONS)} lists what it says",
            'write pt.constrain(x, "data, _"), or with_sharding_constraint',
        ]
        of = "" if self.values == "**" else f" of {self.values!r}"
        return Error(f"the program has no annotations{of} that name an axis of {plan.mesh}", helps=helps)
