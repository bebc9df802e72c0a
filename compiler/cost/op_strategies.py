"""Describes how lookups, writes, scans, selections and gathered folds run: in blocks, or on a gathered array.

An axis on a looked-up dim leaves a choice: either each device looks up in its block and the partial results are summed, or
the array is gathered first. The order of tactics decides, and these texts report it.

    table: f32[model*64, 16]
      looked up in blocks by `gather` at lm.py:12: masked partial sum over `model`
"""

from collections.abc import Iterator

from ...dialects.definitions.requirement_terms import Lookup, Rows
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import is_contiguous, is_padded
from ...rewrites.decide.causes import is_own, summed_ops
from ...rewrites.decide.decide import Move
from ...rewrites.program.program import Node, NodeId, ValueId
from ...rewrites.redistribute.kinds.all_gather import AllGather
from ...rewrites.redistribute.kinds.all_to_all import AllToAll
from ...rewrites.redistribute.kinds.merge import Merge
from ...rewrites.redistribute.steps import Step
from ..plan.state import State

IN_BLOCKS = "looked up in blocks: masked partial sum"
GATHERED = "gathered for the lookup"
WRITTEN = "gathered for the write"
TOTALS = "the totals of the blocks of a scan"
BEST = "the best elements of each block"
SORTED = "the sorted blocks, which are merged"
PARTS = "the parts of a fold that has no collective"
ONE_BLOCK = "the boundary needs one block on each device"
ONE_SIZE = "the boundary needs blocks of one size"


def why(plan: State, move: Move, step: Step) -> str:
    """How a collective relates to a lookup, scan, selection, sort or gathered fold, in text; empty for most."""
    if is_own(move):
        return SORTED if isinstance(step, Merge) else BEST
    if any(each.scans for each in move.pending):
        return TOTALS
    if gathers_parts(move, step):
        return PARTS
    if step.kind in ("all_reduce", "reduce_scatter"):
        terms = summed_ops(plan.decisions, move)
        found = [any(node.signature.indices[at].reads for at in _placed_indices(plan, node, step.axes)) for node in terms]
        return IN_BLOCKS if found and all(found) else f"a term of it is {IN_BLOCKS}" if any(found) else ""
    if at_boundary := _at_boundary(plan, move):
        return at_boundary
    return next((said for use in move.uses if (said := _wanted_whole(plan, step, *use))), "")


def _at_boundary(plan: State, move: Move) -> str:
    """The reason, if a redistribution is to or from the layout of an argument or a result outside of the program."""
    program = plan.source.program
    is_argument = not move.uses and program.producer[move.value] < 0
    if not is_argument and not any(number == program.end for number, _ in move.uses):
        return ""
    inside, shape = move.target if is_argument else move.source, program.shape(move.value)
    dims = [(extent, inside.at(dim)) for dim, extent in enumerate(shape)]
    if any(is_padded(extent, factors) or any(each.has_halo for each in factors) for extent, factors in dims):
        return ONE_SIZE
    return ONE_BLOCK if any(not is_contiguous(extent, factors) for extent, factors in dims) else ""


def gathers_parts(move: Move, step: Step) -> bool:
    """Whether the step gathers the parts of a fold that has no collective."""
    return step.kind == "all_gather" and any(each.is_gathered and each.axis in step.axes for each in move.pending)


def lines(plan: State, value: ValueId) -> Iterator[tuple[str, Node]]:
    """Yields the ops that look elements up in a value that is in blocks, or write to it, each after a text that says how."""
    for node, position in plan.source.program.reads(value):
        for at, factor in plan.decisions.placements.nodes[node.number].placement:
            index, axis = node.signature.indices[at], factor.place
            if not index.parts(Rows) or at not in node.signature.operand_at[position]:
                continue
            if index.monoid is not None:
                yield f"looked up in blocks by `{node.op_name}`{{}}: masked partial sum over `{axis}`", node
            else:
                yield (
                    f"written in blocks by `{node.op_name}`{{}}: each device along `{axis}` drops writes outside its block",
                    node,
                )


def _placed_indices(plan: State, node: Node, axes: tuple[Place, ...]) -> Iterator[int]:
    """The indices of an op that are placed on these axes."""
    placement = plan.decisions.placements.nodes[node.number].placement
    return (index for index, factor in placement if factor.axis in axes)


def _wanted_whole(plan: State, step: Step, number: NodeId, position: int) -> str:
    """The reason why a use needs a dim whole along an axis, if it looks elements up in that dim; otherwise empty."""
    nodes = plan.source.program.nodes
    if number >= len(nodes) or not isinstance(step, AllGather | AllToAll):
        return ""
    for digit in nodes[number].signature.operand_dims[position][step.dim]:
        info = nodes[number].signature.indices[digit.at]
        if info.parts(Lookup):
            return WRITTEN if info.monoid is None else GATHERED
    return ""
