"""Says which ops run along the stored dim of a value, although a later tactic tiled it, because that receives less.

params/embed: f32[data*4096, 1024]
  `gather` at lm.py:12 runs along it on `data`, which receives less than to gather it
"""

from collections.abc import Iterator

from ...dialects.ranges.algebra import Place
from ...rewrites.decide.causes import summed_ops
from ...rewrites.decide.decide import SELECTED, Move
from ...rewrites.decide.placements import Instead
from ...rewrites.program.program import Node, ValueId
from ...rewrites.redistribute.steps import Step
from ..plan.state import State
from .op_strategies import why


def because(plan: State, move: Move, step: Step) -> str:
    """All that texts say about a collective: its relation to lookups and the like, and to ops that run elsewhere."""
    return "; ".join(filter(None, (why(plan, move, step), follows(plan, move, step))))


def follows(plan: State, move: Move, step: Step) -> str:
    """Why a collective moves this value, if an op that reads it or makes the sum runs elsewhere than the tactics say."""
    elsewhere, end = plan.decisions.placements.elsewhere, plan.source.program.end
    made = summed_ops(plan.decisions, move) if step.kind in ("all_reduce", "reduce_scatter") else []
    uses = [number for number, position in move.uses if number < end and position < SELECTED]
    for number in [*(node.number for node in made), *uses]:
        for axis, instead in elsewhere.get(number, {}).items():
            if axis in step.axes:
                return _said(plan, plan.source.program.nodes[number], axis, instead)
    return ""


def _said(plan: State, node: Node, axis: Place, instead: Instead) -> str:
    """Where an op runs, and for the sake of which value; of a value along which it runs, only its name."""
    name = plan.source.addresses.names[parameter(plan, instead.value)]
    if instead.claim is None:
        return f"`{node.op_name}` runs on all devices of `{axis}`, which costs less than to move `{name}`"
    dims = {value: at[instead.claim.at].dim for value, at in node.ends if instead.claim.at in at}
    if instead.value in dims:
        return f"`{node.op_name}` runs along `{name}`, which receives less than to move it"
    value, dim = next(iter(dims.items()))
    along = plan.source.addresses.names[parameter(plan, value)]
    return f"`{node.op_name}` runs along dim {dim} of `{along}`, which costs less than to move `{name}`"


def relocated_ops(plan: State, value: ValueId) -> Iterator[tuple[str, Node]]:
    """Yields the ops that run along a dim of this value because that receives less than a gather, each with a text."""
    for node, position in plan.source.program.reads(value):
        for axis, instead in plan.decisions.placements.elsewhere.get(node.number, {}).items():
            if instead.claim is not None and instead.claim.at in node.signature.operand_at[position]:
                yield f"`{node.op_name}`{{}} runs along it on `{axis}`, which receives less than to gather it", node


def parameter(plan: State, value: ValueId) -> ValueId:
    """The argument that a value is, seen through casts, moves, barriers and borders of loops; otherwise the value itself."""
    program = plan.source.program
    source = program.source(value, lambda node: node.passes_on or node.op_name in ("trip", "optimization_barrier"))
    return source if program.producer[source] < 0 else value
