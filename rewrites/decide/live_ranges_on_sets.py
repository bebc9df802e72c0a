"""The arrays of one device of a device set: those of other sets take no room there, and what it reads of these is there too.

A value of another set is a copy, of the part that arrives, from its first reader on the set to its last one; or the op that
makes it runs there too, on operands that are there in the same way.

    %m = broadcast %ids {B, H, S, S} on stage=0, read on stage=1   -->   on stage=1, a copy of %ids, and %m
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ..program.program import Control, Node, NodeId, ValueId
from .decide import Decisions, Move
from .device_sets import arriving
from .live_ranges import STORES_READS, LiveRanges, LocalArray, MemoryStep, Ranges, live_ranges
from .made_again import MadeAgain


def live_ranges_by_set(decisions: Decisions, sizes: Sequence[int]) -> Mapping[Mesh | None, LiveRanges]:
    """For each device set, the steps of a plan's program, and the arrays that a device of the set stores while they run.

    Most plans have one set, the whole mesh, which is None. `sizes` are the bytes of each of the program's arguments.
    """
    sets = decisions.placements.table.sets
    if sets is None:
        return {None: live_ranges(decisions, sizes)}
    again = MadeAgain(decisions, sets)
    return {on: _OnSet(again, on).main(sizes) for on in sets.every}


class _OnSet(Ranges):
    """The arrays of a device of one set, `own`; the walk is on the set `now`."""

    def __init__(self, again: MadeAgain, own: Mesh) -> None:
        super().__init__(again.decisions)
        self.again, self.sets, self.own, self.now = again, again.sets, own, own
        self.moving |= {node.number for node in self.program.nodes if self.sets.is_apart(node)}
        self.where = dict[LocalArray, Mesh]()
        """The set of each array."""
        self.there = dict[tuple[LocalArray, Mesh, Layout | None], LocalArray]()
        """The copies of arrays on further sets, by the layouts in which they arrive, and what is made again there."""

    def define(self, value: ValueId, made: LocalArray) -> None:
        if self.program.producer[value] < 0:
            self.now = self.sets.arguments[value]
            self.note(made)
        super().define(value, made)

    def op(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.now = self.sets.ops[node.number]
            super().op([node])

    def control(self, control: Control) -> None:
        self.now = self.sets.around(control)
        super().control(control)

    def read(self, value: ValueId, number: NodeId, position: int) -> LocalArray:
        if number == self.program.end:
            self.now = self.sets.of(value)
            return super().read(value, number, position)
        made, move = self.values[value], self.decisions.at_use.get((number, position))
        if move is not None and (move.communicates or self.is_here(made)):
            return self.here(super().read(value, number, position), move.target)
        return self.here(made, self.again.arrives(self.program.nodes[number], position))

    def stepped(self, move: Move, made: LocalArray) -> LocalArray:
        """A value is redistributed on the set on which the walk is, but a sum where it is made."""
        now = self.now
        if move.pending:
            self.now = self.where.get(made, now)
        found = super().stepped(move, self.here(made, arriving(move.source, move.target)))
        self.now = now
        return found

    def here(self, made: LocalArray, arrives: Layout) -> LocalArray:
        """What stands for an array on the set on which the walk is: itself, a copy of what arrives, or what is made again."""
        if self.is_here(made):
            return made
        value = made.value
        node = self.again.instead(value, self.now) if self.values.get(value) is made else None
        key = made, self.now, arrives if node is None else None
        if key not in self.there:
            if node is None:
                self.there[key] = copy = self.array(value, arrives, "transfer")
                self.add(MemoryStep(STORES_READS, "transfer", [made], [copy]))
            else:
                self.make_again(node)
        return self.there[key]

    def is_here(self, made: LocalArray) -> bool:
        return self.where.get(made, self.now) is self.now

    def make_again(self, node: Node) -> None:
        """Runs an op on the set on which the walk is."""
        reads = [self.here(self.values[value], self.again.arrives(node, at)) for at, value in enumerate(node.operands)]
        for value, array in zip(node.results, self.ran(node, reads), strict=True):
            array.form, home = "made again", self.decisions.homes.get(value)
            self.there[self.values[value], self.now, None] = array if home is None else self.settled(home, array)

    def add(self, step: MemoryStep) -> None:
        super().add(step)
        for array in step.makes:
            self.note(array)

    def note(self, array: LocalArray) -> None:
        """Notes where an array is."""
        self.where[array] = self.now
        if self.now is not self.own:
            array.bytes = 0
