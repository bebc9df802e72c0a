"""The beginning of a lowered program, as much as fits on a screen, made without lowering the rest.

Materialising only adds to the end of the program's block and to the nest that is open there. So everything before this nest is
final and, once no redistribution is left, so is the nest. The beginning returns the values that the rest would read. A loop is
an exception: code before it may depend on code after it (`before_loops.py`), so a program that begins with one is lowered as a
whole.

    the first 40 lines of 33,000 ops   -->   the program of their first nests
"""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp

from ...dialects.lax import ScanOp, WhileOp
from ..decide.decide import Decisions, Move, first_use
from ..program.program import NO_NODE, Control, NodeId, ValueId, number_of
from ..redistribute.steps import Path
from .constructors import Global, Globals, Make, Types
from .materialise import Writer
from .to_spmd import Local


def beginning(decisions: Decisions, most: int) -> tuple[ModuleOp, bool]:
    """Lowers until the first `most` ops of the device-local program are final; also returns whether this is all of it."""
    writer = _Beginning(decisions, most)
    return writer.module(), writer.is_whole


class _Beginning(Writer):
    """Lowers ops until the first `most` ops can no longer change."""

    def __init__(self, decisions: Decisions, most: int) -> None:
        super().__init__(decisions, _Counting)
        self.most = most
        self.is_whole = True
        self.last = max((self.when(move) for move in decisions.moves if _communicates(move)), default=NO_NODE)
        """The op after which nothing is redistributed."""
        self.end = self.program.end
        self.results = set(self.program.returned)

    def when(self, move: Move) -> NodeId:
        """The op that reads the moved value or, for a value moved to its own layout, the op that produces it."""
        return first_use(move)[0] if move.uses else self.program.producer[move.value]

    def body(self, region: int) -> None:
        for entry in self.entries[region]:
            if region == 0 and isinstance(self.into, _Counting) and self.is_enough(number_of(entry), self.into):
                self.is_whole, self.end = False, number_of(entry)
                return
            if isinstance(entry, Control):
                if region == 0 and isinstance(entry.op, (ScanOp, WhileOp)):
                    self.most = sys.maxsize
                self.control(entry)
            else:
                self.op(entry)

    def is_enough(self, number: NodeId, into: _Counting) -> bool:
        return into.final + (into.open_ops if number > self.last else 0) >= self.most

    def ends(self) -> list[Global]:
        if self.is_whole:
            return super().ends()
        return [self.into.force(made) for value, made in self.values.items() if self.is_read_later(value)]

    def is_read_later(self, value: ValueId) -> bool:
        return value in self.results or any(number >= self.end for number, _ in self.program.uses[value])


def _communicates(move: Move) -> bool:
    return move.communicates or (move.before is not None and move.before.communicates)


class _Counting(Local):
    """Counts the ops before the open nest, those of a redistribution as one."""

    final = 0

    @property
    def open_ops(self) -> int:
        return len(self.nest.ops)

    def end_nest(self) -> None:
        self.final += len(self.nest.ops)
        super().end_nest()

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        made = super().redistribute(sources, targets, way)
        self.final += 1
        return made

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        made = super().outer(make, operands, types)
        self.final += 1
        return made
