"""Which collective does what a gather, or a fold, and a slice of its result do: the collective laws, asked once a mesh.

A step is a term without its operand. Its axes are a tuple, major to minor, because several neighbours move as one:

    slice(b, 0, 64, all_gather(a, 0, 64, x))   is   ("slice", ("b",), 0, 64) after ("all_gather", ("a",), 0, 64)
"""

from __future__ import annotations

from functools import cache
from typing import cast

from ...dialects.mesh import Mesh
from ...dialects.monoids import MONOIDS
from ..rules.compile import Environment
from ..rules.files import rules
from .steps import devices

Axes = tuple[str, ...]
Op = tuple[object, ...]

# A rule sees the value that both steps are applied to as this leaf.
REST = "rest"


class Laws:
    """The collective laws on one mesh, with a memo of what each pair of steps becomes."""

    def __init__(self, mesh: Mesh) -> None:
        self.env: Environment = facts(mesh)
        self.turns: dict[tuple[Op, Op], tuple[Op, ...]] = {}

    def turn(self, outer: Op, inner: Op) -> tuple[Op, ...]:
        """The single steps that do the same as `inner` and then `outer`."""
        if (made := self.turns.get((outer, inner))) is None:
            terms = rules("collectives").rewrites((*outer, (*inner, REST)), self.env)
            steps = (cast(Op, term) for term, _ in terms)
            made = self.turns[outer, inner] = tuple(step[:-1] for step in steps if step[-1] == REST)
        return made


@cache
def laws_on(mesh: Mesh) -> Laws:
    """The laws on a mesh, with their memo."""
    return Laws(mesh)


def facts(mesh: Mesh) -> Environment:
    """The functions that conditions of the collective laws may call, for one mesh."""

    def size(axes: Axes) -> int:
        return devices(axes, mesh)

    def disjoint(a: Axes, i: int, s: int, b: Axes, j: int, t: int) -> bool:
        return i != j or s % (t * size(b)) == 0 or t % (s * size(a)) == 0

    def sums(monoid: str) -> bool:
        return MONOIDS[monoid].linear

    return {"size": size, "disjoint": disjoint, "sums": sums}
