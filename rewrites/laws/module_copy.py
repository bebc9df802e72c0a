"""Copies a program so that values in the copy can be replaced.

draft.replace(%y, %z)   every op that reads %y reads %z; what only %y needed is gone
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ..program.program import Program, ValueId


@dataclass(slots=True)
class Draft:
    """A copy of a program. It maps values of the original to the copy, and ops of the copy to their originals."""

    program: Program
    module: ModuleOp = field(init=False)
    ssa: list[SSAValue] = field(init=False)
    """The original's values, by their numbers."""
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    origins: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    ops: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    _left: list[Operation] = field(default_factory=list[Operation])

    def __post_init__(self) -> None:
        self.ssa = list(self.program.numbers)
        self.module = cast(ModuleOp, self._copied(self.program.module))

    def _copied(self, op: Operation) -> Operation:
        """Copies an op. Its operands become their copies, which exist already."""
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

    def __getitem__(self, value: ValueId) -> SSAValue:
        """The value in the copy that stands for a value of the original."""
        return self.values[self.ssa[value]]

    def replace(self, value: ValueId, new: SSAValue) -> None:
        """Replaces a value in all ops of the copy that read it by another one, which must be equal to it."""
        old = self[value]
        old.replace_all_uses_with(new)
        self.values[self.ssa[value]] = new
        self.left(old)

    def left(self, *values: SSAValue) -> None:
        """Notes values that may not be read any more, so that `finish` can remove their ops."""
        self._left += [value.op for value in values if isinstance(value, OpResult)]

    def finish(self) -> ModuleOp:
        """Removes the ops that nothing reads any more, and returns the copy."""
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
    """Inserts new ops before an op of a draft. They count as made from the same original op as that one."""

    draft: Draft
    op: Operation

    def append(self, op: Operation) -> None:
        block = self.op.parent
        assert block is not None
        block.insert_op_before(op, self.op)
        self.draft.origins[op] = self.draft.origins[self.op]
