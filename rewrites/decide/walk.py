"""One walk along a program as it was decided: what each op reads, where a value moves before that, and what a region holds.

Materialising writes the IR on this walk; the estimate of memory lists the arrays of one device.

    %h {data*128, 64}, read whole by two ops   -->   node: what makes %h; moves: %h to [512, 64]; node, node: what reads that
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from ..decide.decide import Decisions, Move
from ..program.program import Control, Node, NodeId, ValueId

T = TypeVar("T")
"""What stands for a value."""


class Walk(ABC, Generic[T]):
    """Visits the program once, in order; `values` has what stands for each value where it was made, `moved` after each move."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.placements = decisions.placements
        self.program = decisions.placements.program
        self.values: dict[ValueId, T] = {}
        self.moved: dict[Move, T] = {}
        self.entries = self.program.entries()
        self.moving = {number for number, _ in decisions.at_use}
        """The ops that read a value elsewhere than where it is made: few of them do."""
        self.following: dict[Move, list[Move]] = {}
        """The moves that start with the use of another one, until it is read."""
        for move in decisions.moves:
            if (host := move.host) is not None:
                self.following.setdefault(host, []).append(move)

    def body(self, region: int) -> None:
        """The ops of one region, including nested ops with regions."""
        for entry in self.entries[region]:
            if isinstance(entry, Control):
                self.control(entry)
            else:
                self.op(entry)

    @abstractmethod
    def op(self, nodes: Sequence[Node]) -> None:
        """One op, by its nodes: several if its values are placed apart."""

    @abstractmethod
    def control(self, control: Control) -> None:
        """An op with regions."""

    @abstractmethod
    def moves(self, moves: Sequence[Move], starts: Sequence[T]) -> Iterable[T]:
        """Values after moves that are made at one time."""

    @abstractmethod
    def prefetch(self, move: Move) -> None:
        """Starts a move of the next trip of a loop."""

    @abstractmethod
    def settled(self, move: Move, made: T) -> T:
        """A value that moves where it is made."""

    def define(self, value: ValueId, made: T) -> None:
        """Records a value; one with its own layout is moved there at once."""
        home = self.decisions.homes.get(value)
        self.values[value] = made if home is None else self.settled(home, made)

    def leave(self, node: Node, made: T) -> None:
        """A result of an op with regions; if its border is placed finer than the value that it reads, it moves after the op."""
        move = self.decisions.at_use.get((node.number, 0)) if self.program.from_outside(node.number, 0) else None
        self.define(node.results[0], made if move is None else self.settled(move, made))

    def reads(self, node: Node) -> list[T]:
        """The operands of an op."""
        if node.number not in self.moving:
            return [self.values[value] for value in node.operands]
        return [self.read(value, node.number, at) for at, value in enumerate(node.operands)]

    def read(self, value: ValueId, number: NodeId, position: int) -> T:
        """The value that a use reads: in its own layout, or moved for the use."""
        move = self.decisions.at_use.get((number, position))
        if move is None:
            return self.values[value]
        made = self.moved_value(move)
        for each in self.following.pop(move, ()):
            if each.trip_ahead is None:
                self.moved_value(each)
            else:
                self.prefetch(each)
        return made

    def moved_value(self, move: Move) -> T:
        if move not in self.moved:
            moves = move.together or (move,)
            starts = [self.values[e.value] if e.before is None else self.moved_value(e.before) for e in moves]
            self.moved.update(zip(moves, self.moves(moves, starts), strict=True))
        return self.moved[move]

    def returned(self) -> list[T]:
        """What the program returns."""
        end = self.program.end
        return [self.read(value, end, at) for at, value in enumerate(self.program.returned)]
