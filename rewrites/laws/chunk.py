"""A part of a program in a loop over parts of one of its ranges, so that large values exist in part only: a place in time.

    logits = h @ w; loss = sum(f(logits)); and their gradients   -->   for each t of 8: logits of a part of the rows, ...

The part is all ops between those that make or read a value with the two ranges of a large one: the range of which the loop
runs over parts, and the largest other one. What enters with the range is split, and what leaves is stacked, or, if it is
folded over the range, accumulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Block, Operation, OpResult

from ...dialects.errors import Error
from ..program.dim_classes import Classes
from ..program.program import Node, Program
from .chunk_loop import Loop
from .chunk_part import FOLDS, Part, arrays, at_dim
from .draft import Draft
from .law import Site


class NotInParts(Exception):
    """An op of the part that cannot run in parts, and why."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(why)
        self.node = node


@dataclass(frozen=True, slots=True)
class Chunk:
    """The law for one large value of a program, one of its dims, and a number of trips."""

    value: int
    dim: int
    trips: int
    classes: Classes
    label: str
    """What the user calls the value."""
    name: str = "chunk"
    text: str = "chunk: f(x) => loop over parts of a range of x"

    def sites(self, program: Program) -> Iterator[Site]:
        part = self.part(program)
        yield Site(self.value, tuple(value for node in part.nodes for value in node.results))

    def apply(self, program: Program, draft: Draft, sites: Sequence[Site]) -> None:
        del sites
        Loop(self.part(program), draft, self.trips).write()

    def part(self, program: Program) -> Part:
        """The ops of the loop. Raises Error for trips that do not divide the dim, NotInParts for an op that cannot run so."""
        shape = program.shape(self.value)
        if shape[self.dim] % self.trips or self.trips < 2:
            title = (
                f"`{self.label}` cannot be computed in {self.trips} parts: its dim {self.dim} has {shape[self.dim]} elements"
            )
            raise Error(title, helps=["give a number of trips above 1 that divides them"])
        nodes = _between(program, self.large(program))
        for node in nodes:
            if node.is_border or program.together(node) != [node]:
                raise NotInParts(node, "runs together with what has other ranges")
        indices = _indices(program, self, {node.number for node in nodes})
        for node in nodes:
            if (why := _whole(node, indices.get(node.number))) is not None:
                raise NotInParts(node, why)
        part = Part(program, nodes, indices)
        for node in nodes:
            if any(value in part.made and part.dims[value] is None for value in node.operands):
                raise NotInParts(node, "needs what all parts are folded to")
        return part

    def large(self, program: Program) -> list[Operation]:
        """The ops that make or read a value with both ranges of the large one."""
        shape, of = program.shape(self.value), self.classes.of
        others = [dim for dim in range(len(shape)) if dim != self.dim]
        largest = sorted(others, key=lambda dim: shape[dim])[-1:]
        ranges = {of(self.value, dim) for dim in (self.dim, *largest)}
        region, found = program.region[self.value], list[Operation]()
        for node in program.nodes:
            ends = (*node.operands, *node.results)
            if not node.is_border and node.region == region and any(ranges <= self.ranges(program, v) for v in ends):
                found.append(node.op)
        return found

    def ranges(self, program: Program, value: int) -> set[int]:
        return {self.classes.of(value, dim) for dim in range(len(program.shape(value)))}


def _between(program: Program, ends: Sequence[Operation]) -> list[Node]:
    """These ops of a block, and all on the way from one of them to another; of those with regions, the borders."""
    if not ends:
        return []
    block, ahead, behind = cast(Block, ends[0].parent), set(ends), set(ends)
    ops = list(block.ops)
    for op in ops:
        if any(owner in ahead for owner in _read(op)):
            ahead.add(op)
    for op in reversed(ops):
        if op in behind:
            behind.update(owner for owner in _read(op) if owner.parent is block)
    between = ahead & behind
    return [node for node in program.nodes if node.op in between]


def _read(op: Operation) -> Iterator[Operation]:
    """The ops that make what an op reads, also inside its regions."""
    return (operand.op for inner in op.walk() for operand in inner.operands if isinstance(operand, OpResult))


def _indices(program: Program, chunk: Chunk, inside: set[int]) -> dict[int, int]:
    """For each op the index that the range is, found from the large value outwards; -1 if it is two of them."""
    found: dict[int, int] = {}
    left = [(chunk.value, chunk.dim)]
    for value, dim in left:
        for node in _around(program, value, inside):
            for other, dims in arrays(node):
                index = at_dim(dims, dim) if other == value else None
                if index is None:
                    continue
                found[node.number] = index if found.get(node.number, index) == index else -1
                same = ((end, at) for end, its in arrays(node) for at in range(len(its)) if at_dim(its, at) == index)
                left += [each for each in same if each not in left]
    return found


def _around(program: Program, value: int, inside: set[int]) -> Iterator[Node]:
    """The ops of the part that make or read a value."""
    numbers = dict.fromkeys([program.producer[value], *(number for number, _ in program.uses[value])])
    return (program.nodes[number] for number in numbers if number in inside)


def _whole(node: Node, index: int | None) -> str | None:
    """Why an op cannot run on a part of an index; None if it can."""
    if index is None:
        return "needs what all parts are folded to"
    if index < 0:
        return "reads the range along two dims"
    info = node.signature.instance.indices[index]
    if info.monoid is not None and info.monoid not in FOLDS:
        return f"folds it by `{info.monoid}`"
    more = (info.value, info.lookups, info.masked, info.once, info.scan, info.selects, info.merges, info.windows, info.over)
    dims = [(its, dim) for _, its in arrays(node) for dim in range(len(its)) if any(each.at == index for each in its[dim])]
    alone = all(at_dim(its, dim) == index for its, dim in dims)
    return None if alone and not any((*more, info.pieces, info.picks)) else "uses the positions along it"
