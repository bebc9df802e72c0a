"""Parts of a program that share no values: what is placed in one of them says nothing about the others.

a + a.T, b + b.T   -->   a with the op that adds it; b with the op that adds it
"""

from collections.abc import Iterator, Sequence

from .breadth_first import reached
from .program import NO_VALUE, Node, NodeId, Program, ValueId


def parts(program: Program) -> Sequence[ValueId]:
    """Per value the part that it is in: the number of the first value in it. Found once for a program."""
    if len(program.part) < len(program.types):
        program.part = _found(program)
    return program.part


def _found(program: Program) -> list[ValueId]:
    """Nodes are joined with their values, values with the nodes that read them, and regions with all inside."""
    count = len(program.nodes)
    inside: list[list[NodeId]] = [[] for _ in program.regions]
    for node in program.nodes:
        for region in _regions(program, node):
            inside[region].append(node.number)

    def beside(end: int) -> Iterator[int]:
        """What is joined with a value, `~v`; with a node, `n`; or with a region, `count + r`."""
        if end >= count:
            yield from inside[end - count]
        elif end >= 0:
            node = program.nodes[end]
            yield from (~value for value in (*node.operands, *node.results) if not _is_given(program, value))
            yield from (count + region for region in _regions(program, node))
        else:
            yield from (number for number, _ in program.uses[~end] if number < count)
            if program.producer[~end] >= 0:
                yield program.producer[~end]

    found = [NO_VALUE] * len(program.types)
    for value in program.values:
        if found[value] < 0:
            starts = [~value] if not _is_given(program, value) else []
            for end in reached(starts, beside):
                if end < 0:
                    found[~end] = value
            found[value] = value
    return found


def _regions(program: Program, node: Node) -> set[int]:
    """The regions that a node is in, or is at the border of, without the program itself."""
    return {node.region, *node.reads, *(program.region[value] for value in node.results)} - {0}


def _is_given(program: Program, value: ValueId) -> bool:
    """Whether a value is a scalar that no op computes from another value: it is whole on every device, whoever reads it."""
    maker = program.producer[value]
    return not program.shape(value) and (maker < 0 or not program.nodes[maker].operands)
