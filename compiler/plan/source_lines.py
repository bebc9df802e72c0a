"""Where in the user's program a value, or an op, is."""

from ...rewrites.program.program import Node
from ..inputs.lines import Source
from .state import State


def line_of(plan: State, value: int, node: Node | None) -> Source | None:
    """The source line of an op, or else of the op that produces the value."""
    made = plan.source.program.producer[value]
    own = None if node is None else line_of_op(plan, node)
    return line_of_op(plan, plan.source.program.nodes[made]) if own is None and made >= 0 else own


def line_of_op(plan: State, node: Node) -> Source | None:
    """The source line of an op; None for one that no line of the program has written."""
    return plan.source.traced.sources.get(node.op)
