"""The ops of a loop over parts of a range, and the dim of each array that is the range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...dialects.definitions.tilings import SubIndices
from ..program.program import Node, NodeId, Program, ValueId


class Accumulates(NamedTuple):
    """How folds of parts are combined: by which op, and from which monoid's unit."""

    op: str
    unit: str


FOLDS = {each: Accumulates(each, each) for each in ("max", "min", "mul", "and", "or")} | {"add": Accumulates("add", "pick")}
"""Monoid, by its name in collectives -> how its folds of parts are combined."""


@dataclass(frozen=True)
class LoopPart:
    """The ops of a loop in program order, each with the index of which a trip computes a part."""

    program: Program
    nodes: Sequence[Node]
    indices: Mapping[NodeId, int]

    @cached_property
    def dims(self) -> dict[ValueId, int | None]:
        """For each value that the part makes or reads, the dim that is the range; None if it does not have the range."""
        found: dict[ValueId, int | None] = {}
        for node in self.nodes:
            for value, dims in arrays_of(node):
                found[value] = next((dim for dim in range(len(dims)) if at_dim(dims, dim) == self.indices[node.number]), None)
        return found

    @cached_property
    def made(self) -> dict[ValueId, None]:
        """The values that the part makes, in program order."""
        return dict.fromkeys(value for node in self.nodes for value in node.results)

    @cached_property
    def given(self) -> list[ValueId]:
        """The values that the part reads but does not make."""
        return [*dict.fromkeys(value for node in self.nodes for value in node.operands if value not in self.made)]

    @cached_property
    def results(self) -> list[ValueId]:
        """The values that the part makes and that are read outside of it."""
        program, inside = self.program, {node.number for node in self.nodes}
        return [v for v in self.made if v in program.returned or any(number not in inside for number, _ in program.uses[v])]

    @property
    def consts(self) -> list[ValueId]:
        return [value for value in self.given if self.dims[value] is None]

    @property
    def rows(self) -> list[ValueId]:
        return [value for value in self.given if self.dims[value] is not None]

    @property
    def carried(self) -> list[ValueId]:
        return [value for value in self.results if self.dims[value] is None]

    @property
    def stacked(self) -> list[ValueId]:
        return [value for value in self.results if self.dims[value] is not None]

    def folds(self, value: ValueId) -> str:
        """The monoid that folds the range, for a result of the part that does not have it."""
        node = self.program.made_by(value)
        return node.signature.indices[self.indices[node.number]].monoid or "add"


def arrays_of(node: Node) -> list[tuple[ValueId, SubIndices]]:
    """The operands and results of an op, each with the indices of its dims."""
    ends = (*node.operands, *node.results)
    return list(zip(ends, (*node.signature.operand_dims, *node.signature.result_dims), strict=True))


def at_dim(dims: SubIndices, dim: int) -> int | None:
    """The index that a dim consists of; None if it has several indices or none, or is read through a window."""
    digits = dims[dim]
    return digits[0].at if len(digits) == 1 and digits[0].minor == 1 and digits[0].reach is None else None
