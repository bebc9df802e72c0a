"""Where two plans of one program differ, as regions that do not touch, each with its cost in either plan.

A region consists of ops that the two plans place differently, and of ops joined by a redistribution that only one plan has. So
regions are independent: the cost of one does not depend on the others.

    a + a.T and b + b.T, replicate('a', 'data') and tile('add#1', 0, 'data')   -->   a with its uses, and the op that adds b
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...rewrites.decide.decide import Move
from ...rewrites.decide.table import Claim
from ...rewrites.program.program import Program
from ..cost.costs import Cost, cost_of
from ..plan.state import State


@dataclass(slots=True)
class Region:
    """A region: the ends in it, and the redistributions and ops of either plan there that differ."""

    ends: set[int] = field(default_factory=set[int])
    nodes: list[int] = field(default_factory=list[int])
    before: list[Move] = field(default_factory=list[Move])
    after: list[Move] = field(default_factory=list[Move])

    def costs(self, before: State, after: State) -> tuple[Cost, Cost]:
        """The costs of the region in both plans."""
        return cost_of(before, self.before, self.nodes), cost_of(after, self.after, self.nodes)


def end_of(program: Program, value: int) -> int:
    """The end that a value belongs to: the op that makes it, or for an argument a negative number."""
    return program.producer[value] if program.producer[value] >= 0 else ~value


def regions(before: State, after: State, joined: Iterable[Collection[int]] = ()) -> list[Region]:
    """The regions in which two plans of a program on one mesh differ. The ends in each of `joined` share a region."""
    program, found = before.source.program, _Joined()
    changed, moves = _changed(before, after), [*_moves(before, after)]
    for ends in joined:
        found.join(ends)
    for end in changed:
        # A value that lies otherwise joins what makes it and what reads it, if that runs otherwise too.
        operands = program.nodes[end].operands if end >= 0 else ()
        found.join([end, *(made for made in (end_of(program, value) for value in operands) if made in changed)])
    for move, _ in moves:
        found.join([each for part in (move, *move.together) for each in _ends(program, part)])
    made: dict[int, Region] = {}
    for end in found.above:
        made.setdefault(found.first(end), Region()).ends.add(end)
    for end in changed:
        if end >= 0:
            made[found.first(end)].nodes.append(end)
    for move, is_after in moves:
        region = made[found.first(end_of(program, move.value))]
        (region.after if is_after else region.before).append(move)
    return [*made.values()]


class _Joined:
    """A union-find structure over ends. One end stands for all that are joined with it."""

    def __init__(self) -> None:
        self.above: dict[int, int] = {}

    def first(self, end: int) -> int:
        above = self.above
        while (up := above.setdefault(end, end)) != end:
            above[end] = above[up]
            end = up
        return end

    def join(self, ends: Iterable[int]) -> None:
        first, *others = (self.first(end) for end in ends)
        for each in others:
            self.above[self.first(each)] = self.first(first)


def _ends(program: Program, move: Move) -> Iterator[int]:
    """Yields the ends that a redistribution joins: the op that makes the value, and the ops that read it."""
    yield end_of(program, move.value)
    yield from (number for number, _ in move.uses if number < len(program.nodes))


def _changed(before: State, after: State) -> set[int]:
    """The ends that have other claims, run differently, or make values with other layouts or pending sums."""
    program, found = before.source.program, set[int]()
    none: Sequence[Claim | None] = [None] * max(len(program.nodes), len(program.types))
    for axis in before.table.axes.keys() | after.table.axes.keys():
        old, new = before.table.axes.get(axis), after.table.axes.get(axis)
        found |= _otherwise(none if old is None else old.nodes, none if new is None else new.nodes)
        values = _otherwise(none if old is None else old.values, none if new is None else new.values)
        found |= {end_of(program, value) for value in values}
    old, new = before.decisions.placements, after.decisions.placements
    found |= {at for at, (a, b) in enumerate(zip(old.nodes, new.nodes, strict=True)) if a is not b and a != b}
    lie = {at for at, (a, b) in enumerate(zip(old.homes, new.homes, strict=True)) if a is not b and a != b}
    sums = {value for value, _ in old.sources.items() ^ new.sources.items()}
    return found | {end_of(program, value) for value in lie | sums}


def _otherwise(before: Sequence[Claim | None], after: Sequence[Claim | None]) -> set[int]:
    """The positions at which claims differ. Which tactic made them does not matter."""
    return {
        at
        for at, (old, new) in enumerate(zip(before, after, strict=False))
        if old is not new and (old is None or new is None or old.at != new.at or old.factor is not new.factor)
    }


def _moves(before: State, after: State) -> Iterator[tuple[Move, bool]]:
    """Yields the redistributions that only one of the plans has, and whether that is the second plan."""
    old, new = (
        {(move.value, move.target, tuple(move.uses)): move for move in each.decisions.moves} for each in (before, after)
    )
    for key in old.keys() | new.keys():
        left, right = old.get(key), new.get(key)
        if left is None or right is None or (left.path is not right.path and left.path.steps != right.path.steps):
            yield from ((move, is_after) for move, is_after in ((left, False), (right, True)) if move is not None)
