"""The residual stream: the activations to which the parts of a model add their sums, for parts that are placed on an axis.

h = gelu(x @ w1); x = x + h @ w2, units on `model`   -->   h @ w2 forward; backward, the gradient of what w1 is multiplied by
"""

from collections.abc import Iterable, Iterator, Set
from functools import partial

from ...dialects.ranges.algebra import Place
from ...rewrites.decide.decide import Decisions, as_claimed
from ...rewrites.decide.table import AxisTable
from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import Program, ValueId
from ..plan.addresses import argument
from ..plan.state import State
from .products import Passes, sums


def stream(plan: State, axis: str) -> dict[ValueId, tuple[ValueId, ...]]:
    """The values at which sums over an axis are resolved, if they have the dims of a product with a parameter.

    Each comes with the parameters whose products are summed there. Forward, backward and recomputed sums are included, and sums
    of lookups. They are read off the decisions, so a sum that waits counts where it resolves: three gradients of one value
    count as one sum. Each op counts where tactics place it, though it may run elsewhere because that costs less.
    """
    plan = plan.decided
    decisions = as_claimed(plan.decisions)
    parts = set(plan.mesh.named(axis))
    kinds = {dim_classes(plan, value) for part in parts for value in _rows(plan, part)}
    moves = (move for move in decisions.moves if any(each.axis in parts for each in move.pending))
    ends = dict.fromkeys(move.value for move in moves if dim_classes(plan, move.value) in kinds)
    found: dict[ValueId, tuple[ValueId, ...]] = {}
    for end in ends:
        of = tuple(dict.fromkeys(_parameters(plan, decisions, end, parts)))
        for value in _tileable(plan, end, kinds):
            found[value] = (*found.get(value, ()), *of)
    return found


def _parameters(plan: State, decisions: Decisions, end: ValueId, parts: Set[Place]) -> Iterator[ValueId]:
    """Yields the parameters of the products and lookups whose sums over these axes are pending until a value."""
    program, waiting = plan.source.program, decisions.placements.sources
    tables = [plan.table.axes[part] for part in parts if part in plan.table.axes]

    def later(value: ValueId) -> Iterator[ValueId]:
        is_end = _is_summed(program, value, tables)
        return (v for v in program.made_of(value) if not is_end and any(pend.axis in parts for pend in waiting.get(v, ())))

    for value in reached([end], later):
        if _is_summed(program, value, tables):
            yield from (own for own in map(partial(argument, program), program.made_of(value)) if own is not None)


def _is_summed(program: Program, value: ValueId, tables: Iterable[AxisTable]) -> bool:
    """Whether the op that makes a value sums over an index that one of these tables places."""
    node = program.made_by(value)
    return any(claim is not None and sums(node, claim.at) for table in tables for claim in [table.nodes[node.number]])


def _tileable(plan: State, value: ValueId, kinds: Set[frozenset[int]]) -> list[ValueId]:
    """The values to tile: the value, if a product or a lookup makes it; if it adds up several sums, its readers' results."""
    program = plan.source.program
    if _is_summed(program, value, plan.table.axes.values()):
        return [value]
    read = [result for node in program.readers(value) for result in node.results]
    return [result for result in read if dim_classes(plan, result) in kinds] or [value]


def _rows(plan: State, part: Place) -> Iterator[ValueId]:
    """Yields the results of forward products with a parameter that sum over the axis."""
    passes, table = Passes(plan), plan.table.axes.get(part)
    for node in passes.products() if table is not None else ():
        claim = table.nodes[node.number] if table is not None else None
        if claim is not None and sums(node, claim.at) and any(passes.parameter(value) is not None for value in node.operands):
            yield node.results[0]


def dim_classes(plan: State, value: ValueId) -> frozenset[int]:
    """The classes of the dims of a value."""
    return frozenset(plan.source.classes.dims(value))
