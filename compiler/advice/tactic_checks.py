"""Checks that a tactic did what it was asked for: that batches are computed in parts, and that weights form pairs.

DataParallel("data", inputs="x"), x.reshape(3, 10, ...) and a scan over the 3   -->   an error: nothing would run in parts
Megatron("model", column={"up": 0})                                             -->   an error: dim 0 of `up` is summed over
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...dialects.ground.errors import Error
from ...dialects.ranges.algebra import Place
from ...rewrites.decide.table import Claim
from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import Node, NodeId, ValueId
from ..cost.collectives import use_of
from ..inputs.lines import at_line
from ..inputs.message_language import cited, step
from ..plan.addresses import argument, is_seen_through, only_moves
from ..plan.source_lines import line_of
from ..plan.state import State
from ..structure.products import Passes, is_product, sums
from .stop_fixes import instead


def batch_in_parts(plan: State, dim: int, axes: Sequence[str], what: str) -> Error | None:
    """The error if no op computes anything of the last tactic's inputs in parts: all of them at most move in parts."""
    program, values = plan.source.program, plan.actions[-1].values
    parts = [part for axis in axes for part in plan.mesh.named(axis) if part in plan.table.axes]
    moves, reads = _moved_in_parts(plan, values, parts)
    stopped = [each for each in plan.table.blocked.values() if each.node in reads and each.axis in parts]
    if any(plan.table.axes[axis].nodes[number] is not None for axis in parts for number in reads):
        return None
    # The decisions may split the axis.
    if any(plan.decided.placed_on(axis, number) for axis in parts for number in reads):
        return None
    if not stopped:
        is_open = any(number in reads for number, _, _ in plan.table.conflicts)
        return None if is_open or not (moves and reads) else _ended(plan, moves[-1], what)
    first, names = stopped[0], plan.source.addresses.names
    node = program.nodes[first.node]
    value = node.end(first.operand)
    source = line_of(plan, value, node)
    splits = plan.table.ways_across(first)
    tiles = (f'tile("{names[each]}", {dim}, "{first.axis}")' for each in values)
    split = "split the axis: " + step(*tiles, f'propagate("{first.axis}", split=True)')
    return Error(
        f"`{what}` computes nothing in parts: `{first.axis}` ({first.axis.amount}) stops at the first op, `{node.op_name}`",
        location=None if source is None else source.location(),
        label=f"dim {first.dim} of `{names[value]}` ({first.extent}): {first.reason}",
        helps=[split] if splits else [f"{way.why}: {cited(way.tactic)}"] if (way := instead(plan, first)) is not None else [],
    )


def _moved_in_parts(
    plan: State, values: Iterable[ValueId], parts: Iterable[Place]
) -> tuple[Sequence[Node], Collection[NodeId]]:
    """The ops that only move values, in parts, and the ops that read what these make."""
    program, placed = plan.source.program, [plan.table.axes[part].nodes for part in parts]
    moves, reads = list[Node](), set[NodeId]()

    def moved(value: ValueId) -> Iterator[ValueId]:
        for number in {number for number, _ in program.uses[value] if number < program.end}:
            node = program.nodes[number]
            if only_moves(node) and any(nodes[number] is not None for nodes in placed):
                moves.append(node)
                yield from node.results
            else:
                reads.add(number)

    deque(reached(values, moved), maxlen=0)
    return moves, reads


def _ended(plan: State, node: Node, what: str) -> Error:
    """The error for inputs that are moved in parts, at most."""
    source = line_of(plan, node.results[0], node)
    return Error(
        f"`{what}` computes nothing in parts: the batch ends at `{node.op_name}`, which only moves it",
        location=None if source is None else source.location(),
        helps=["tile a dim that the ops behind it have too, perhaps of other inputs"],
    )


class WeightUse(NamedTuple):
    """An op that reads a weight, the position of the weight among its operands, and the op's claim on an axis."""

    node: Node
    operand: int
    claim: Claim

    @property
    def sums(self) -> bool:
        """Whether the op sums over the index that is placed."""
        return sums(self.node, self.claim.at)


def unpaired(plan: State, columns: Mapping[str, ValueId], rows: Mapping[str, ValueId], axis: str) -> Error | None:
    """The error for the first weight that is no column or row: columns give tiled values, and rows sum over tiled values.

    A pair then costs one all_reduce forward, after the row, and one backward, before the column.
    """
    passes = Passes(plan)
    for part in (part for part in plan.mesh.named(axis) if part.size > 1):
        for weights, is_row in ((columns, False), (rows, True)):
            for name, value in weights.items():
                for each in _products(passes, value, part):
                    if problem := _problem(plan, name, each, part, is_row):
                        return problem
        if problem := _summed(passes, part) or _gathered(passes, part):
            return problem
    return None


def _products(passes: Passes, value: ValueId, axis: Place) -> Iterator[WeightUse]:
    """Yields the placed forward products that read a value, also through casts, moves and borders of loops."""
    program, claims = passes.plan.source.program, passes.plan.table.axes[axis].nodes
    for each in program.downstream([value], is_seen_through):
        for node, operand in program.reads(each):
            claim = claims[node.number]
            if is_product(node) and claim is not None and not passes.is_later(node):
                yield WeightUse(node, operand, claim)


def _problem(plan: State, name: str, product: WeightUse, axis: Place, is_row: bool) -> Error | None:
    node, source = product.node, line_of(plan, product.node.results[0], product.node)
    where = f"`{node.op_name}`{at_line(source)}"
    side, other = ("row", "column") if is_row else ("column", "row")
    weight = node.signature.operand_at[product.operand]
    location = None if source is None else source.location()
    if product.claim.at not in weight:
        by = plan.cited(product.claim.tactic)
        if product.claim.tactic == len(plan.actions) - 1:
            return None
        title = f"`Megatron` cannot use `{axis}` for `{name}`: {where} already uses it, by {by}"
        return Error(title, location=location, helps=["apply `Megatron` before it, or use another axis"])
    if product.sums != is_row:
        dim = weight[product.claim.at].dim
        does = "does not sum over" if is_row else "sums over"
        title = f"`{name}` is no {side} of `Megatron`: {where} {does} its dim {dim}"
        helps = [f'give it as `{other}`, or name its dim, from the end: {side}={{"{name}": {-2 if is_row else -1}}}']
        return Error(title, location=location, helps=helps)
    return None


def _summed(passes: Passes, axis: Place) -> Error | None:
    """The error for a product of two computed values, inside of a pair, that sums over the dim that a column places.

    scores = q @ k, with the width of each head on the axis   -->   an all_reduce of the scores
    """
    plan = passes.plan
    program, number = plan.source.program, len(plan.actions) - 1
    for node, claim in zip(program.nodes, plan.table.axes[axis].nodes, strict=True):
        # Few ops sum over what they are placed on, so this is asked first: the rest takes longer.
        if claim is None or claim.tactic != number or not sums(node, claim.at) or not is_product(node):
            continue
        if passes.is_later(node) or any(_is_weight(passes, value) for value in node.operands):
            continue
        source = line_of(plan, node.results[0], node)
        names = [plan.source.addresses.names[value] for value in node.operands]
        return Error(
            f"`Megatron` does not pair up: `{node.op_name}` sums over the dim that a column puts on `{axis}`",
            location=None if source is None else source.location(),
            label=f"the product of `{names[0]}` and `{names[1]}` would need an all_reduce between column and row",
            helps=['name a dim of the weights that no op between them sums over, as that of the heads: column={"wq": -2}'],
        )
    return None


def _is_weight(passes: Passes, value: ValueId) -> bool:
    """Whether a value is a parameter, or what an optimizer makes of it, as in the second of two steps."""
    program = passes.plan.source.program
    maker = program.maker(program.source(value, lambda node: is_seen_through(node) and len(node.operands) == 1))
    return argument(program, value) is not None or (maker is not None and passes.is_later(maker))


def _gathered(passes: Passes, axis: Place) -> Error | None:
    """The error for a value inside of a pair that is gathered, because an op between column and row cannot keep the axis."""
    plan = passes.plan
    program, number = plan.source.program, len(plan.actions) - 1
    # Without a stop there is no need to decide anything yet.
    if not any(stop.tactic == number and stop.axis == axis for stop in plan.table.blocked.values()):
        return None
    conflicts, on = {node for node, _, _ in plan.table.conflicts}, {*plan.decided.mesh.split(axis)}
    for move in plan.decisions.moves:
        claim, node = plan.table.claim(move.value, axis), use_of(plan, move)
        steps = [step for step in move.path.steps if on.intersection(step.axes) and step.kind in ("all_gather", "all_to_all")]
        if not steps or node is None or plan.decided.placed_on(axis, node.number) or node.number in conflicts:
            continue
        if not move.uses or claim is None or claim.tactic != number or program.parameter[move.value]:
            continue
        if not passes.is_later(node) and (source := line_of(plan, move.value, node)) is not None:
            name = plan.source.addresses.names[move.value]
            title = f"`Megatron` does not pair up: `{node.op_name}` needs `{name}` whole, which its column puts on `{axis}`"
            label = f"{plan.layout_text(move.value)} by {steps[0]}"
            helps = ["leave out the column before it and the row after it", "or place the op by another tactic before"]
            return Error(title, location=source.location(), label=label, helps=helps)
    return None
