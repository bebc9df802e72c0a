"""A copy of a program in which values are replaced.

draft.replace(%y, %z)   every op that reads %y reads %z; what only %y needed is gone
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ..program.program import Program


@dataclass(slots=True)
class Draft:
    """The copy, where each value of the original went, and from which op of the original each op of the copy comes."""

    program: Program
    module: ModuleOp = field(init=False)
    ssa: list[SSAValue] = field(init=False)
    """The original's values by their numbers."""
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    origins: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    ops: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    _left: list[Operation] = field(default_factory=list[Operation])

    def __post_init__(self) -> None:
        self.ssa = list(self.program.numbers)
        self.module = cast(ModuleOp, self._copied(self.program.module))

    def _copied(self, op: Operation) -> Operation:
        """A copy of an op, with what it reads replaced by the copies of that, which is before it."""
        values = self.values
        regions = [Region([self._copied_block(block) for block in region.blocks]) for region in op.regions]
        # Not `Operation.clone`, which walks both modules once more to set operands.
        new = type(op).create(
            operands=[values[value] for value in op.operands],
            result_types=op.result_types,
            properties=op.properties,
            attributes=op.attributes,
            location=op.location,
            regions=regions,
        )
        values.update(zip(op.results, new.results, strict=True))
        self.origins[new], self.ops[op] = op, new
        return new

    def _copied_block(self, block: Block) -> Block:
        new = Block(arg_types=block.arg_types)
        self.values.update(zip(block.args, new.args, strict=True))
        new.add_ops([self._copied(op) for op in block.ops])
        return new

    def __getitem__(self, value: int) -> SSAValue:
        """What stands for a value of the original now."""
        return self.values[self.ssa[value]]

    def replace(self, value: int, new: SSAValue) -> None:
        """Make all that read a value of the original read another one, which is equal to it."""
        old = self[value]
        old.replace_all_uses_with(new)
        self.values[self.ssa[value]] = new
        self.left(old)

    def left(self, *values: SSAValue) -> None:
        """Say that these may not be read any more."""
        self._left += [value.op for value in values if isinstance(value, OpResult)]

    def finish(self) -> ModuleOp:
        """The copy without the ops that nothing reads any more."""
        while self._left:
            op = self._left.pop()
            if op.parent is None or any(result.first_use is not None for result in op.results):
                continue
            self.left(*op.operands)
            op.detach()
            op.erase()
            self.origins.pop(op, None)
        kept = set(self.module.walk())
        self.origins = {op: old for op, old in self.origins.items() if op in kept}
        self.values = {old: new for old, new in self.values.items() if _is_in(new, kept)}
        return self.module


def _is_in(value: SSAValue, ops: set[Operation]) -> bool:
    owner = value.owner
    return owner in ops if isinstance(owner, Operation) else cast(Operation, owner.parent_op()) in ops


@dataclass(slots=True)
class Before:
    """Where new ops go: before an op of a draft. They come from the op of the original from which that one comes."""

    draft: Draft
    op: Operation

    def append(self, op: Operation) -> None:
        block = self.op.parent
        assert block is not None
        block.insert_op_before(op, self.op)
        self.draft.origins[op] = self.draft.origins[self.op]
