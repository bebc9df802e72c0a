"""Terms of collectives, stored as spines, and how the laws rewrite them.

A redistribution is a term in which each step is applied to the one before. It is stored as a tuple of steps, outermost
first, and a rule is tried on two neighbours, `outer(inner(rest))`. The results are memoised, because a mesh has few kinds of
neighbours.

    slice(b, 0, 64, all_gather(a, 0, 128, x))   is   (("slice", "b", 0, 64), ("all_gather", "a", 0, 128))
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import cast

from ...dialects.mesh import Mesh
from ...dialects.monoids import MONOIDS
from ..rules.compile import Environment, RuleSet
from ..rules.files import rules

Op = tuple[object, ...]
Spine = tuple[Op, ...]

# A rule sees the rest of the spine as this leaf.
REST = "rest"

# Gathers and all_reduces do not move inwards by themselves: other steps pass them.
LATE = ("all_gather", "all_reduce")


class Laws:
    """The collective laws on one mesh, with a memo of how each pair of neighbours is rewritten."""

    def __init__(self, mesh: Mesh) -> None:
        self.env: Environment = facts(mesh)
        self.turns: dict[tuple[Op, Op], tuple[Spine, ...]] = {}
        self.swaps: dict[tuple[Op, Op], Spine | None] = {}

    def turn(self, outer: Op, inner: Op) -> tuple[Spine, ...]:
        """The results of the collective laws on two neighbours."""
        if (made := self.turns.get((outer, inner))) is None:
            made = self.turns[outer, inner] = tuple(_react(rules("collectives"), outer, inner, self.env))
        return made

    def swap(self, outer: Op, inner: Op) -> Spine | None:
        """The same two steps the other way round, if a law of order says so."""
        if (outer, inner) not in self.swaps:
            self.swaps[outer, inner] = next(_react(rules("order"), outer, inner, self.env), None)
        return self.swaps[outer, inner]

    def settle(self, spine: Spine) -> Spine:
        """Moves every step as early as the laws of order allow, and sorts steps of one kind, so that neighbours merge."""
        ops = list(spine)
        for start in range(len(ops) - 2, -1, -1):
            at = start
            while at + 1 < len(ops) and ops[at][0] not in LATE and (pair := self.swap(ops[at], ops[at + 1])):
                ops[at : at + 2] = pair
                at += 1
        for end in range(len(ops), 1, -1):
            for at in range(end - 1):
                outer, inner = ops[at], ops[at + 1]
                if outer[0] == inner[0] and _rank(outer) > _rank(inner) and (pair := self.swap(outer, inner)):
                    ops[at : at + 2] = pair
        return tuple(ops)

    def moves(self, spine: Spine) -> Iterator[Spine]:
        """The terms that one collective law leads to, settled. A slice that cancels needs no alternative."""
        turns = list(self._turns(spine))
        cancelled = [turned for turned in turns if len(turned) == len(spine) - 2]
        for turned in cancelled[:1] or turns:
            yield self.settle(turned)

    def _turns(self, spine: Spine) -> Iterator[Spine]:
        """Moves each slice inwards in its run, and each step of the next run outwards in that one, and rewrites the pair."""
        for at, outer in enumerate(spine):
            if outer[0] != "slice":
                continue
            end = _run_end(spine, at)
            for other in range(end, _run_end(spine, end) if end < len(spine) else end):
                if not self._commutes(outer, spine[at + 1 : end], spine[end:other], spine[other]):
                    continue
                for made in self.turn(outer, spine[other]):
                    yield spine[:at] + spine[at + 1 : end] + made + spine[end:other] + spine[other + 1 :]

    def _commutes(self, outer: Op, slices: Spine, others: Spine, inner: Op) -> bool:
        past_slices = all(self.swap(outer, each) == (each, outer) for each in slices)
        return past_slices and all(self.swap(each, inner) == (inner, each) for each in others)


@cache
def laws_on(mesh: Mesh) -> Laws:
    """The laws on a mesh, with their memo."""
    return Laws(mesh)


def _rank(op: Op) -> tuple[object, ...]:
    """The order within a run, outermost first: gathers take the minor axis first, all others the major one."""
    match op:
        case ("all_gather", axis, int(dim), int(stride)):
            return dim, -stride, axis
        case ("slice", axis, int(dim), int(stride)) | ("reduce_scatter", _, axis, int(dim), int(stride)):
            return dim, stride, axis
        case ("all_to_all", axis, int(dim), int(stride), int(to_dim), _):
            return dim, to_dim, stride, axis
        case _:
            return op


def _run_end(spine: Spine, at: int) -> int:
    """The end of the run of steps of one kind that `at` lies in."""
    end = at
    while end < len(spine) and spine[end][0] == spine[at][0]:
        end += 1
    return end


def _react(ruleset: RuleSet, outer: Op, inner: Op, env: Environment) -> Iterator[Spine]:
    for term, _ in ruleset.rewrites((*outer, (*inner, REST)), env):
        yield _spine(term)


def _spine(term: object) -> Spine:
    """The steps of a term, outermost first."""
    ops: list[Op] = []
    while term != REST:
        *op, term = cast("tuple[object, ...]", term)
        ops.append(tuple(op))
    return tuple(ops)


def facts(mesh: Mesh) -> Environment:
    """The functions that conditions of the collective laws may call, for one mesh."""

    def disjoint(a: str, i: int, s: int, b: str, j: int, t: int) -> bool:
        return i != j or s % (t * mesh[b]) == 0 or t % (s * mesh[a]) == 0

    def sums(monoid: str) -> bool:
        return MONOIDS[monoid].linear

    return {"size": mesh.__getitem__, "disjoint": disjoint, "sums": sums}
