"""The beginning of a lowered program, made without the rest: what fits on a screen.

Materialising only adds to the end of the program's block and to the nest that is open there. What is before this nest stays as
it is, and once nothing is redistributed any more, so does what is in it. What the rest reads is returned instead. What stands
before a loop may depend on what is read behind it (`before_loops.py`): a program that begins with a loop is made whole.

    the first 40 lines of 33,000 ops   -->   the program of their first nests
"""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp

from ...dialects.lax import ScanOp, WhileOp
from ..decide.decide import Decisions, Move, first_use
from ..program.program import Control
from .constructors import Global, Globals, Make, Types
from .materialise import Writer
from .to_spmd import Local


def beginning(decisions: Decisions, most: int) -> tuple[ModuleOp, bool]:
    """The device-local program as far as its first `most` ops are those of the whole one; and whether it is the whole one."""
    writer = _Beginning(decisions, most)
    return writer.module(), writer.is_whole


class _Beginning(Writer):
    """Walks the program until enough is final."""

    def __init__(self, decisions: Decisions, most: int) -> None:
        super().__init__(decisions, _Counting)
        self.most = most
        self.is_whole = True
        self.last = max((self.when(move) for move in decisions.moves if _communicates(move)), default=-1)
        """The op after which nothing is redistributed."""
        self.end = len(self.program.nodes)
        self.results = set(self.program.returned)

    def when(self, move: Move) -> int:
        """The op that reads what is moved, or, if the value has its own layout, the one that makes it."""
        return first_use(move)[0] if move.uses else self.program.producer[move.value]

    def body(self, region: int) -> None:
        for entry in self.entries[region]:
            if region == 0 and isinstance(self.into, _Counting) and self.is_enough(entry.number, self.into):
                self.is_whole, self.end = False, entry.number
                return
            if region == 0 and isinstance(entry, Control) and isinstance(entry.op, (ScanOp, WhileOp)):
                self.most = sys.maxsize
            self.entry(entry)

    def is_enough(self, number: int, into: _Counting) -> bool:
        return into.final + (into.open_ops if number > self.last else 0) >= self.most

    def ends(self) -> list[Global]:
        if self.is_whole:
            return super().ends()
        return [self.into.force(made) for value, made in self.values.items() if self.is_read_later(value)]

    def is_read_later(self, value: int) -> bool:
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

    def redistribute(self, sources: Globals, targets: Types) -> Globals:
        made = super().redistribute(sources, targets)
        self.final += 1
        return made

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        made = super().outer(make, operands, types)
        self.final += 1
        return made
