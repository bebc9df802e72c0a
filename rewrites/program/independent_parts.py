"""Parts of a program that share no values: what is placed in one of them says nothing about the others.

a + a.T, b + b.T   -->   a with the op that adds it; b with the op that adds it
"""

from collections.abc import Sequence
from typing import cast

from .program import Node, Program, ValueId
from .union_find import UnionFind


def parts(program: Program) -> Sequence[ValueId]:
    """Per value the part that it is in: the number of the first value in it. Found once for a program."""
    if len(program.part) < len(program.types):
        program.part = _found(program)
    return program.part


def _found(program: Program) -> list[ValueId]:
    """Joins the values around each node with the regions that it is in; what is joined has the first value's number.

    Region `r` has the number `count + r` meanwhile.
    """
    count = len(program.types)
    given = {value for value in program.values if _is_given(program, value)}
    joined = UnionFind([*range(count + len(program.regions))])
    for node in program.nodes:
        ends: list[int] = [value for value in (*node.operands, *node.results) if value not in given]
        if program.has_regions:
            ends += (count + region for region in _regions(program, node))
        for end in ends[1:]:
            joined.join(ends[0], end)
    return cast("list[ValueId]", joined.roots()[:count])


def _regions(program: Program, node: Node) -> set[int]:
    """The regions that a node is in, or is at the border of, without the program itself."""
    return {node.region, *node.reads, *(program.region[value] for value in node.results)} - {0}


def _is_given(program: Program, value: ValueId) -> bool:
    """Whether a value is a scalar that no op computes from another value: it is whole on every device, whoever reads it."""
    if program.types[value].shape:
        return False
    maker = program.producer[value]
    return maker < 0 or not program.nodes[maker].operands
