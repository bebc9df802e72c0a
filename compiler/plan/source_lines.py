"""Finds the line of the user's program that a value, or an op, comes from."""

from ...rewrites.program.program import NO_VALUE, Node, ValueId
from ..inputs.lines import SourceLine
from .state import State


def line_of(plan: State, value: ValueId, node: Node | None) -> SourceLine | None:
    """The source line of an op or, if it has none, of the op that makes the value."""
    own = None if node is None else line_of_op(plan, node)
    if own is not None or value == NO_VALUE:
        return own
    made = plan.source.program.producer[value]
    return line_of_op(plan, plan.source.program.nodes[made]) if made >= 0 else None


def line_of_op(plan: State, node: Node) -> SourceLine | None:
    """The source line of an op; None if no line of the program has written it."""
    sources = plan.source.traced.sources
    return sources.found.get(node.op) or sources.get(node.op)
