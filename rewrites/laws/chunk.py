"""`chunk`: computes a part of a program in a loop over parts of one of its ranges, so that no large value exists whole.

    logits = h @ w; loss = sum(f(logits)); and their gradients   -->   for each t of 8: logits of a part of the rows, ...

The part is all ops between those that make or read a value with two certain ranges of the large value: the range that the loop
cuts into parts, and the largest other one. Arrays that enter the part with the range are split. Results that leave it are
stacked or, if they are folded over the range, accumulated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation

from ..program.breadth_first import reached
from ..program.dim_classes import Classes
from ..program.program import NO_NODE, Node, NodeId, Program, Signature, ValueId
from .chunk_loop import ChunkLoop
from .chunk_part import FOLDS, LoopPart, arrays_of, at_dim
from .law import Site
from .module_copy import Draft


class NotInParts(Exception):
    """Raised for an op of the part that cannot run in parts, with the reason."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(why)
        self.node = node


@dataclass(frozen=True, slots=True)
class Chunk:
    """The law for one large value of a program: its part is computed in `trips` trips."""

    value: ValueId
    part: LoopPart
    trips: int
    name: str = "chunk"
    text: str = "chunk: f(x) => loop over parts of a range of x"

    @property
    def loop(self) -> Hashable:
        """A key that is equal for two values of a program if the same loop computes them."""
        indices = self.part.indices
        return self.trips, tuple((node.number, indices.get(node.number)) for node in self.part.nodes)

    def sites(self, program: Program) -> Iterator[Site]:
        del program
        yield Site(self.value, tuple(self.part.made))

    def apply(self, program: Program, draft: Draft, sites: Sequence[Site]) -> None:
        del program, sites
        ChunkLoop(self.part, draft, self.trips).write()


def part_of(program: Program, classes: Classes, value: ValueId, dim: int) -> LoopPart:
    """The ops of the loop over parts of a dim of a value. Raises NotInParts for an op that cannot run in parts."""
    nodes = _between(program, _large(program, classes, value, dim))
    for node in nodes:
        if node.is_border or program.together(node) != [node]:
            raise NotInParts(node, "runs together with what has other ranges")
    indices = _indices(program, value, dim, {node.number for node in nodes})
    for node in nodes:
        if (why := _why_whole(node, indices.get(node.number))) is not None:
            raise NotInParts(node, why)
    part = LoopPart(program, nodes, indices)
    for node in nodes:
        if any(value in part.made and part.dims[value] is None for value in node.operands):
            raise NotInParts(node, "needs what all parts are folded to")
    return part


def _large(program: Program, classes: Classes, value: ValueId, dim: int) -> list[Node]:
    """The ops that make or read a value with both ranges of the large value: that of the dim, and that of its largest other
    dim."""
    shape = program.shape(value)
    largest = sorted((each for each in range(len(shape)) if each != dim), key=lambda each: shape[each])[-1:]
    ranges = {classes.of(value, each) for each in (dim, *largest)}
    large = {
        each
        for each, type in zip(program.values, program.types, strict=True)
        if len(type.shape) >= len(ranges) and ranges.issubset(classes.dims(each))
    }
    nodes = (node for node in program.nodes if not node.is_border and node.region == program.region[value])
    return [node for node in nodes if not large.isdisjoint((*node.operands, *node.results))]


def _between(program: Program, ends: Sequence[Node]) -> list[Node]:
    """These ops of a block, and all ops on a way from one of them to another. Ops with regions are given by their borders."""
    if not ends:
        return []
    block, producer = ends[0].op.parent, program.producer
    ops = _ops_of(program, block)
    read = [[ops[producer[value]] for value in node.operands if producer[value] >= 0] for node in program.nodes]
    ahead = {ops[node.number] for node in ends}
    behind = set(ahead)
    for op, its in zip(ops, read, strict=True):
        if op >= 0 and not ahead.isdisjoint(its):
            ahead.add(op)
    for op, its in zip(reversed(ops), reversed(read), strict=True):
        if op in behind:
            behind.update(each for each in its if each >= 0)
    between = ahead & behind
    return [node for node in program.nodes if ops[node.number] in between and node.op.parent is block]


def _ops_of(program: Program, block: Block | None) -> list[NodeId]:
    """For each op, the number of the op of a block that it is, or is inside of; NO_NODE if there is none."""
    found, around = list[NodeId](), dict[Operation, NodeId]()
    for node in program.nodes:
        op: Operation | None = node.op
        while op is not None and op.parent is not block:
            op = op.parent_op()
        if op is None:
            found.append(NO_NODE)
        elif node.is_border or op is not node.op or node.signature.definition.apart:
            found.append(around.setdefault(op, node.number))
        else:
            found.append(node.number)
    return found


def _indices(program: Program, value: ValueId, dim: int, inside: set[NodeId]) -> dict[NodeId, int]:
    """For each op, the index that the range is, found from the large value outwards; -1 if two indices are the range."""
    found, done = dict[NodeId, int](), set[tuple[NodeId, int]]()
    tables = dict[Signature, list[list[int | None]]]()

    def beside(place: tuple[ValueId, int]) -> Iterator[tuple[ValueId, int]]:
        value, dim = place
        for node in _around(program, value, inside):
            ends, table = (*node.operands, *node.results), tables.get(node.signature)
            if table is None:
                table = tables[node.signature] = [[at_dim(dims, at) for at in range(len(dims))] for _, dims in arrays_of(node)]
            for other, its in zip(ends, table, strict=True):
                index = its[dim] if other == value else None
                if index is None or (node.number, index) in done:
                    continue
                done.add((node.number, index))
                found[node.number] = index if found.get(node.number, index) == index else -1
                yield from ((end, at) for end, its in zip(ends, table, strict=True) for at in _places(its, index))

    deque(reached([(value, dim)], beside), 0)
    return found


def _places(indices: Sequence[int | None], index: int) -> Iterator[int]:
    """Yields the dims that are this index alone."""
    return (at for at, each in enumerate(indices) if each == index)


def _around(program: Program, value: ValueId, inside: set[NodeId]) -> Iterator[Node]:
    """Yields the ops of the part that make or read a value."""
    numbers = dict.fromkeys([program.producer[value], *(number for number, _ in program.uses[value])])
    return (program.nodes[number] for number in numbers if number in inside)


def _why_whole(node: Node, index: int | None) -> str | None:
    """The reason why an op cannot run on a part of an index; None if it can."""
    if index is None:
        return "needs what all parts are folded to"
    if index < 0:
        return "reads the range along two dims"
    info = node.signature.indices[index]
    if info.monoid is not None and info.monoid not in FOLDS:
        return f"folds it by `{info.monoid}`"
    dims = [(its, dim) for _, its in arrays_of(node) for dim in range(len(its)) if any(each.at == index for each in its[dim])]
    alone = all(at_dim(its, dim) == index for its, dim in dims)
    return None if alone and not info.by_position else "uses the positions along it"
