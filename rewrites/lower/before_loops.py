"""Computes a value before a loop, instead of after it, if that frees more memory than the value takes.

A device's compiler may put off an op until its result is read. If that is after a loop, all that the op reads is kept during
the loop. For example, only the optimizer reads the gradient of a model's head, and the gradient's product reads the logits:

    %dw = dot %logits, %x;  scan %dx;  add %dw, ...
        -->   %dw = dot %logits, %x;  %dw', %dx' = spmd.barrier %dw, %dx;  scan %dx';  add %dw', ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import spmd
from ...dialects.types import ArrayType

MUCH = 1 << 20
"""The bytes that a device must save before a value is tied to a loop."""


def free_before_loops(block: Block, loops: Iterable[Operation]) -> None:
    """Computes values before each loop if that frees more memory than they take, by barriers with an operand of the loop."""
    ops = list(block.ops)
    order = Order(ops)
    early = {
        loop: [op.results[0] for op in ops[before + 1 : loop] if len(op.results) == 1 and order.keeps_more(op, before, loop)]
        for before, loop in pairwise([-1, *(order.numbers[loop] for loop in loops)])
    }
    for loop, values in early.items():
        _tie(values, ops[loop], order)


class Order:
    """The ops of a block, by number."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.ops = ops
        self.numbers: Mapping[Operation, int] = {op: number for number, op in enumerate(ops)}

    def maker(self, value: SSAValue) -> int:
        """The number of the op that produces a value; -1 for an argument."""
        return self.numbers.get(cast(Operation, value.owner), -1)

    def uses(self, value: SSAValue) -> list[int]:
        """The numbers of the block's ops that read a value, or that hold such an op in a region."""
        return [number for use in value.uses if (number := self.within(use.operation)) is not None]

    def within(self, op: Operation | None) -> int | None:
        while op is not None and op not in self.numbers:
            op = op.parent_op()
        return None if op is None else self.numbers[op]

    def keeps_more(self, op: Operation, before: int, loop: int) -> bool:
        """Whether a result is first read after the loop, and the values that only its computation reads are larger by `MUCH`.

        Values before the previous loop are computed there, and are only read.
        """
        (result,) = op.results
        if min(self.uses(result), default=0) <= loop:
            return False
        late, waiting, read = set[int](), {self.numbers[op]}, set[SSAValue]()
        while waiting:  # The last one first, so that all readers of its results have been looked at.
            number = max(waiting)
            waiting.remove(number)
            results = (each for each in self.ops[number].results if each is not result)
            if late.issuperset(chain.from_iterable(map(self.uses, results))):
                late.add(number)
                read.update(self.ops[number].operands)
                waiting.update(maker for each in self.ops[number].operands if (maker := self.maker(each)) > before)
        freed = (each for each in read if self.maker(each) >= 0 and self.maker(each) not in late)
        return sum(_bytes(each) for each in freed if max(self.uses(each)) < loop) >= _bytes(result) + MUCH


def _tie(values: Sequence[SSAValue], loop: Operation, order: Order) -> None:
    """Puts a barrier before the loop, with the values and with the loop's operand that is computed last."""
    last = max(range(len(loop.operands)), key=lambda number: order.maker(loop.operands[number]), default=-1)
    if not values or last < 0 or order.maker(loop.operands[last]) < 0:
        return
    barrier = spmd.BarrierOp([*values, loop.operands[last]])
    cast(Block, loop.parent).insert_op_before(barrier, loop)
    for old, new in zip(values, barrier.results, strict=False):
        old.replace_uses_with_if(new, lambda use: use.operation is not barrier)
    loop.operands[last] = barrier.results[-1]


def _bytes(value: SSAValue) -> int:
    return cast(ArrayType, value.type).nbytes
