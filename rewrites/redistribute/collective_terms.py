"""Asks the collective laws which single collective equals a gather or a fold, followed by a slice of its result.

A step is a term without its operand. Its axes are a tuple, major to minor, because several neighbours move as one:

    slice(b, 0, 64, all_gather(a, 0, 64, x))   is   ("slice", ("b",), 0, 64) after ("all_gather", ("a",), 0, 64)
"""

from __future__ import annotations

from functools import cache
from typing import cast

from ...dialects.ground.monoids import MONOIDS
from ...dialects.ranges.algebra import Place
from ..rules.compile import Environment
from ..rules.rule_files import rules
from .steps import Step, devices

Axes = tuple[Place, ...]
Op = tuple[object, ...]

# A rule sees the value that both steps are applied to as this leaf.
REST = "rest"


@cache
def turn(outer: Op, inner: Op) -> tuple[Op, ...]:
    """The single steps that are equal to `inner` followed by `outer`."""
    terms = rules("collectives").rewrites((*outer, (*inner, REST)), FACTS)
    steps = (cast(Op, term) for term, _ in terms)
    return tuple(step[:-1] for step in steps if step[-1] == REST)


def kind_of(op: Op) -> type[Step]:
    """The class of a step that is given as a term."""
    return Step.known[cast(str, op[0])]


@cache
def step_of(op: Op) -> Step:
    """The step of a term, without its place in a path."""
    return kind_of(op).of(*op[1:])


def _disjoint(a: Axes, i: int, s: int, b: Axes, j: int, t: int) -> bool:
    return i != j or s % (t * devices(b)) == 0 or t % (s * devices(a)) == 0


def _sums(monoid: str) -> bool:
    return MONOIDS[monoid].linear


FACTS: Environment = {"size": devices, "disjoint": _disjoint, "sums": _sums}
"""The functions that the conditions of the collective laws may call."""
