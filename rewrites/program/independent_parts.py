"""Parts of a program that share no values: what is placed in one of them says nothing about the others.

a + a.T, b + b.T   -->   a with the op that adds it; b with the op that adds it
"""

from collections.abc import Mapping, Sequence
from typing import cast

from .program import NO_VALUE, Node, Program, ValueId
from .union_find import UnionFind


def parts(program: Program) -> Sequence[ValueId]:
    """Per value the part that it is in: the number of the first value in it. Found once for a program."""
    if len(program.part) < len(program.types):
        program.part = _found(program)
    return program.part


def nodes_by_part(program: Program) -> Mapping[ValueId, list[Node]]:
    """The ops in each part that has any. An effect that reads and makes nothing is in no part."""
    part, found = parts(program), dict[ValueId, list[Node]]()
    for node in program.nodes:
        if node.main != NO_VALUE:
            found.setdefault(part[node.main], []).append(node)
    return found


def _found(program: Program) -> list[ValueId]:
    """Joins the values around each node with the regions that it is in; what is joined has the first value's number.

    Region `r` has the number `count + r` meanwhile.
    """
    count = len(program.types)
    given = {value for value in program.values if not program.types[value].shape and _is_given(program, value)}
    joined = UnionFind([*range(count + len(program.regions))])
    for node in program.nodes:
        ends: list[int] = [*node.operands, *node.results]
        if not given.isdisjoint(ends):
            ends = [value for value in ends if value not in given]
        if program.has_regions:
            ends += (count + region for region in _regions(program, node))
        for end in ends[1:]:
            joined.join(ends[0], end)
    return cast("list[ValueId]", joined.roots()[:count])


def _regions(program: Program, node: Node) -> set[int]:
    """The regions that a node is in, or is at the border of, without the program itself."""
    return {node.region, *node.reads, *(program.region[value] for value in node.results)} - {0}


def _is_given(program: Program, value: ValueId) -> bool:
    """Whether no op computes a scalar from another value: it is whole on every device, whoever reads it."""
    maker = program.producer[value]
    return maker < 0 or not program.nodes[maker].operands
