"""How often each op of a program runs. Where that is unknown, the loop or branch on which it depends.

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
    """Names the loops with unknown trip counts and the branches, numbered in program order for each kind."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.numbers: Counter[str] = Counter()

    def of(self, op: Operation) -> list[str]:
        """The mark of each region of an op: a name if its number of runs is unknown, otherwise empty."""
        if not op.regions or isinstance(op, ScanOp):
            return [""] * len(op.regions)
        kind = self.prefix + op.name.removeprefix("lax.")
        mark = f"{kind}#{self.numbers[kind]}"
        self.numbers[kind] += 1
        return [f"{mark}:{branch}" if isinstance(op, CondOp) else mark for branch in range(len(op.regions))]


def trips(op: Operation) -> int:
    """The trip count of an op's regions; 1 if it is unknown."""
    return op.length if isinstance(op, ScanOp) else 1


def executions(block: Block, marks: Marks, times: int = 1, where: str = "") -> Iterator[tuple[Operation, int, str]]:
    """Yields each op of a block and of the regions in it, with how often it runs and the marks of the regions around it."""
    for op in block.ops:
        for region, mark in zip(op.regions, marks.of(op), strict=True) if op.regions else ():
            yield from executions(region.block, marks, times * trips(op), "/".join(filter(None, (where, mark))))
        yield op, times, where
