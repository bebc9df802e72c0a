"""What to do where propagation stops: another dim, padding, sub-axes or fewer devices, if the op can then be placed.

Nothing is said of an op by its name: each cure is tried on the op's indices.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from ...dialects.definitions.registry import definitions
from ...dialects.params import ParamsAttr
from ...dialects.ranges.algebra import SubAxis
from ...dialects.ranges.factor import Factor
from ...dialects.regions import TRIPS
from ...rewrites.decide.table import Blocked, Table, next_factor
from ...rewrites.program.program import Digit, Node
from ..trace.why_whole import REASONS
from .refusals import kept_whole
from .state import State

WANTED_WHOLE = "its result is wanted whole, and a merge of blocks would receive more than a gather"
"""The reason of a stop that the uses of the op's results cause."""


def cure(plan: State, stop: Blocked) -> str:
    """The first cure that fits: first those with which all devices of the axis share the work."""
    node = plan.source.program.nodes[stop.node]
    return next(cure for cure in _cures(plan, stop, node) if cure)


def _cures(plan: State, stop: Blocked, node: Node) -> Iterator[str]:
    tactic = plan.actions[stop.tactic]
    if stop.reason == WANTED_WHOLE:
        yield _kept_whole(plan, stop, node.end(stop.operand))
    if _splits(plan, stop):
        yield f'split the axis: plan.propagate("{stop.axis}", split=True)'
    if tactic.values and "padded=True" not in tactic.text and _fits(plan.table, stop, node, stop.factor, padded=True):
        yield f"have it padded: {tactic.text[:-1]}, padded=True)"
    if "block=" in tactic.text and (blocks := _one_block(stop)) is not None and _fits(plan.table, stop, node, blocks):
        yield f"have one block on each device: {tactic.text} without `block`"
    yield cure_of_whole(node)
    yield from (f"tile another dim here: {call}" for call in _other_dims(plan, stop, node))
    if tactic.values and (size := _fewer(plan, stop, node)) is not None:
        yield f'use fewer devices: "{stop.axis}.0:{size}" instead of "{stop.axis}" in {tactic.text}'
    if node.kind in TRIPS:
        yield "if the trips do not depend on each other, write them as jax.vmap instead of a loop"
    if node.kind in definitions.added:
        yield f"if `{node.signature.instance.definition.title}` can run in parts along this dim, give it an index in pt.define"
    yield _kept_whole(plan, stop, node.end(stop.operand))


def _kept_whole(plan: State, stop: Blocked, value: int) -> str:
    """The tactic that keeps a value replicated: before the one that tiles it, or in its place if that names the value."""
    tactic, name = plan.actions[stop.tactic], plan.source.addresses.names[value]
    if plan.table.axes[stop.axis].values[value] is None:
        return f'if all of it is needed anyway, gather it once: plan.replicate("{name}", "{stop.axis}")'
    order = f"{'instead of' if value in tactic.values else 'before'} {tactic.text.lstrip('# ')}"
    return f'if all of it is needed anyway, keep it replicated: pt.Replicate("{name}", "{stop.axis}") {order}'


def cure_of_whole(node: Node) -> str:
    """For user code, a definition; nothing for other ops, and for primitives that must run unpartitioned."""
    if node.kind != "whole" or (node.signature.own and not node.signature.once) or not node.results:
        return ""
    primitive = str(cast(ParamsAttr, node.op.properties["params"])["primitive"])
    if "pt.define" not in REASONS.get(primitive, "pt.define"):
        return ""
    form = '@pt.define("f(x)   out[i.., j:] = @(x[i.., j:])")'
    return f"say along which dims it can run in parts, on the function that calls it: {form}"


def _digits(node: Node, position: int) -> tuple[tuple[Digit, ...], ...]:
    signature = node.signature
    return signature.operand_dims[position] if position >= 0 else signature.result_dims[-1 - position]


def _fits(table: Table, stop: Blocked, node: Node, factor: Factor, padded: bool = False) -> bool:
    """Whether an index of the dim takes a factor."""
    return _takes(table, node, _digits(node, stop.operand)[stop.dim], factor, padded)


def _takes(table: Table, node: Node, digits: tuple[Digit, ...], factor: Factor, padded: bool = False) -> bool:
    for digit in digits:
        index = digit.inward(factor, padded, node.signature.shifts)
        if index is not None and table.fits_node(node, digit.at, index):
            return True
    return False


def _one_block(stop: Blocked) -> Factor | None:
    """The same place in one block a device, for an axis that has blocks in turn; None if it has no such blocks."""
    return None if not stop.factor.is_in_turn(stop.extent) else stop.factor.even(stop.extent, padded=False)


def _splits(plan: State, stop: Blocked) -> bool:
    """Whether sub-axes of the axis take one index each."""
    if stop.axis not in plan.mesh.whole().axes or not plan.table.ways_across(stop):
        return False
    return kept_whole(plan, stop.axis) is None


def _fewer(plan: State, stop: Blocked, node: Node) -> int | None:
    """The most devices, fewer than those of the axis, in whose blocks the op can run."""
    if stop.axis not in plan.mesh.whole().axes or stop.factor.has_halo or stop.factor.span < stop.extent:
        return None
    others = replace(plan.table, axes={axis: table for axis, table in plan.table.axes.items() if axis != stop.axis})
    for size in range(stop.size - 1, 1, -1):
        part = Factor(SubAxis(stop.axis, 0, size), size, stop.factor.span // size)
        if stop.size % size == 0 and _fits(others, stop, node, part):
            return size
    return None


def _other_dims(plan: State, stop: Blocked, node: Node) -> Iterator[str]:
    """Tiles of the op's results, or of the value that it reads, with which the op is placed."""
    read = [stop.operand] if stop.operand >= 0 and plan.source.program.producer[node.end(stop.operand)] >= 0 else []
    stopped = {digit.at for digit in _digits(node, stop.operand)[stop.dim]}
    for position in (*range(-1, -1 - len(node.results), -1), *read):
        value = node.end(position)
        for dim, digits in enumerate(_digits(node, position)):
            if {digit.at for digit in digits} & stopped:
                continue
            factor = next_factor(plan.table, value, dim, stop.axis)
            if factor is not None and _takes(plan.table, node, digits, factor):
                yield f'plan.tile("{plan.source.addresses.names[value]}", {dim}, "{stop.axis}")'
