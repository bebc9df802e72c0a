"""Recognises places of a program that are alike, as in the layers of a model: a law finds the same at all of them.

layer 0:  %5 = dot %1 %2; %6 = dot %5 %3       (0, dot, (1, dot, (2, argument), (3, argument)), (4, argument))
layer 1:  %9 = dot %6 %7; %10 = dot %9 %8      the same, if %5 and %9 are read as often
"""

from __future__ import annotations

from ..program.program import Program, ValueId
from ..rules.rule import RuleApply, Term

Key = tuple[object, ...]


def levels(term: Term) -> int:
    """The depth of a term: how many ops follow one another in it."""
    return 1 + max(map(levels, term.args), default=0) if isinstance(term, RuleApply) else 0


def site_key(program: Program, value: ValueId, levels: int) -> tuple[Key, list[ValueId]]:
    """A key for the ops by which a value is computed, down to `levels` ops; and the values in it, in the order of the key.

    Two places with equal keys are alike: the key numbers values by where they first occur. For each op it has the signature,
    whether the op is in the region of the first, and how often its result is read. Ops that move one operand are not counted.
    """
    key, numbers = list[object](), dict[ValueId, int]()
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
