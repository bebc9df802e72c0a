"""Places of a program that are alike: whatever a law sees of one, it sees of the other, as in the layers of a model.

layer 0:  %5 = dot %1 %2; %6 = dot %5 %3       (0, dot, (1, dot, (2, argument), (3, argument)), (4, argument))
layer 1:  %9 = dot %6 %7; %10 = dot %9 %8      the same, if %5 and %9 are read as often
"""

from __future__ import annotations

from ..program.program import Program
from ..rules.rule import Apply, Term

Key = tuple[object, ...]


def levels(term: Term) -> int:
    """How many ops follow one another in a term."""
    return 1 + max(map(levels, term.args), default=0) if isinstance(term, Apply) else 0


def around(program: Program, value: int, levels: int) -> tuple[Key, list[int]]:
    """What makes a value, as a key that tells values apart only by where they occur in it; and these values, in that order.

    It has so many levels of ops, each seen through what moves its operands, and what makes the operands of the last one. Of
    each op it says what it is, whether it is in the region of the first, and how often its result is read.
    """
    key, numbers = list[object](), dict[int, int]()
    nodes, producer, uses, region = program.nodes, program.producer, program.uses, program.region[value]
    left = [(value, levels)]
    while left:
        value, level = left.pop()
        key.append(numbers.setdefault(value, len(numbers)))
        if (number := producer[value]) < 0:
            key.append(None)
            continue
        node = nodes[number]
        key += (node.signature, node.region == region, len(uses[value]))
        if node.reads:
            continue
        if node.signature.instance.moves and len(node.operands) == 1:
            left.append((node.operands[0], level))
        elif level:
            left += [(each, level - 1) for each in node.operands]
    return tuple(key), list(numbers)
