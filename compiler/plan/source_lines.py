"""Finds the line of the user's program that a value, or an op, comes from."""

from ...rewrites.program.program import Node, ValueId
from ..inputs.lines import SourceLine
from .state import State


def line_of(plan: State, value: ValueId, node: Node | None) -> SourceLine | None:
    """The source line of an op or, if it has none, of the op that makes the value."""
    made = plan.source.program.producer[value]
    own = None if node is None else line_of_op(plan, node)
    return line_of_op(plan, plan.source.program.nodes[made]) if own is None and made >= 0 else own


def line_of_op(plan: State, node: Node) -> SourceLine | None:
    """The source line of an op; None if no line of the program has written it."""
    sources = plan.source.traced.sources
    return sources.found.get(node.op) or sources.get(node.op)
