"""How often the ops of a program run, and if that is unknown, on which loop or branch it depends.

lax.scan {length = 8} {%a}   -->   %a 8 times
lax.while {%b} {%c}          -->   %b and %c at least once, in `while#0`
lax.cond {%d} {%e}           -->   %d in `cond#0:0`, %e in `cond#0:1`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from xdsl.ir import Block, Operation

from ...dialects.lax import CondOp, ScanOp


class Marks:
    """The names of loops with unknown trip counts and of branches, numbered in program order for each kind."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.numbers: Counter[str] = Counter()

    def of(self, op: Operation) -> list[str]:
        """The mark of each region of the next op; empty if the op's trip count is known."""
        if not op.regions or isinstance(op, ScanOp):
            return [""] * len(op.regions)
        kind = self.prefix + op.name.removeprefix("lax.")
        mark = f"{kind}#{self.numbers[kind]}"
        self.numbers[kind] += 1
        return [f"{mark}:{branch}" if isinstance(op, CondOp) else mark for branch in range(len(op.regions))]


def trips(op: Operation) -> int:
    """How often an op runs its regions; 1 if that is unknown."""
    return op.length if isinstance(op, ScanOp) else 1


def executions(block: Block, marks: Marks, times: int = 1, where: str = "") -> Iterator[tuple[Operation, int, str]]:
    """Each op of a block and of its nested regions, with how often it runs and the marked regions around it."""
    for op in block.ops:
        for region, mark in zip(op.regions, marks.of(op), strict=True):
            yield from executions(region.block, marks, times * trips(op), "/".join(filter(None, (where, mark))))
        yield op, times, where
