"""Cures for stops: tactics with which propagation does not stop there. Each is tried before it is offered.

Another dim, padding, sub-axes or fewer devices share the work; a value that is needed whole in any case is kept whole. Nothing
is said of an op by its name: what may be tried follows from the op's indices. What only a change of the program can cure is an
advice.

sort(x), x on `data`   -->   tile another dim here: plan.tile('sort#0', 1, 'data'), and what a device then receives and computes
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import islice
from typing import cast

from ...dialects.definitions.registry import definitions
from ...dialects.definitions.tilings import SubIndex
from ...dialects.ground.amounts import of_bytes, of_flops
from ...dialects.ground.errors import Error
from ...dialects.ranges.algebra import Axis, SubAxis
from ...dialects.ranges.factor import Factor
from ...dialects.regions import TRIPS
from ...rewrites.decide.table import BlockedOp, Table, next_factor
from ...rewrites.program.program import Node, ValueId
from ..cost.collectives import bytes_per_device
from ..cost.costs import price
from ..cost.flops import Flops, flops_per_device
from ..inputs.message_language import cited, step
from ..inputs.names import Patterns
from ..plan.claims import Some, propagate, replicate, tile
from ..plan.state import State
from ..trace.why_whole import REASONS
from ..views.grouping import grouped
from .open_stops import WANTED_WHOLE, is_open, open_stops
from .tactic_edits import Change, PlanStep, helpful_edits

MOST_TRIED = 6
"""The most changes that are tried for a stop. Each takes a plan."""


@dataclass(frozen=True, slots=True)
class Cure:
    """A tactic that cures a stop, and what a device then receives and computes in a call. It has been tried.

    It is a tactic itself, `plan.apply(stop.cure)`. `tactic` is its line in the trace of the plan that this makes.
    """

    why: str
    tactic: str
    place: str
    """The place of the line in the trace, if it is not the last: `instead of 1: tile('x', 0, 'data')`."""
    bytes: int
    flops: Flops
    change: Change
    plan: State = field(repr=False, compare=False)
    """The plan for which the cure was tried."""

    def __call__(self, plan: Some) -> Some:
        tried, same = self.plan, plan.actions[: len(self.plan.actions)] == self.plan.actions
        if plan.source.program is not tried.source.program or plan.mesh.whole() != tried.mesh.whole() or not same:
            helps = ["take one of a stop of this plan: plan.blocked[0].cure"]
            raise Error(f"`{self.text}` was tried on another plan", helps=helps)
        return self.change(plan)

    @property
    def text(self) -> str:
        """What to type: a method of the plan; or a line of the trace, and its place there."""
        return f"{cited(self.tactic)} {self.place}" if self.place else step(self.tactic)

    def __str__(self) -> str:
        return f"{self.why}: {self.text}"

    def __repr__(self) -> str:
        return f"{self}: a device then receives {of_bytes(self.bytes)} and computes {self.flops.text(number=of_flops)}"


def cure(plan: State, stop: BlockedOp) -> Cure | None:
    """The change that cures a stop, and all stops that are alike, at the lowest price; None if none is found.

    Changes with which all devices of the axis share the work come first. If none of them works, fewer devices are used; then
    the value is gathered once; then the tactic that tiles it is undone. Stops that are alike, as in layers, are cured together.
    """
    known, key = plan.once(_cure_cache), _alike(plan, stop)
    if key not in known:
        alike = plan.once(_groups)[key]
        ways = _WAYS if stop.weight is None else (_in_turn,)
        kinds = ([*_tried(plan, alike, islice(way(plan, alike), MOST_TRIED))] for way in ways)
        known[key] = next((_cheapest(cures) for cures in kinds if cures), None)
    return known[key]


def _cheapest(cures: Sequence[tuple[Cure, State]]) -> Cure:
    """The cure whose plan has the lowest price. That of a single one is not asked for."""
    return min(cures, key=lambda each: price(each[1]))[0] if len(cures) > 1 else cures[0][0]


def instead(plan: State, stop: BlockedOp) -> Cure | None:
    """The first cure that replaces the plan's last tactic, or comes before it; None if there is none."""
    last = len(plan.actions) - 1
    changes = (change for way in _WAYS for change in way(plan, [stop]) if change.number == last)
    return next((found for found, _ in _tried(plan, [stop], changes)), None)


def advice(node: Node) -> str:
    """A change of the program that would let propagation pass an op; empty if there is none."""
    if node.op_name in TRIPS:
        return "if the trips do not depend on each other, write them as jax.vmap instead of a loop"
    if node.op_name in definitions.added:
        return f"if `{node.signature.definition.title}` can run in parts along this dim, give it an index in pt.define"
    return advice_for_whole(node)


def _cure_cache(plan: State) -> dict[object, Cure | None]:
    """A cache of the cures that have been searched for."""
    del plan
    return {}


def _groups(plan: State) -> dict[object, list[BlockedOp]]:
    """Groups the open stops that are alike."""
    return grouped(open_stops(plan), partial(_alike, plan))


def _alike(plan: State, stop: BlockedOp) -> object:
    """The key of stops that one tactic may cure: the op, its types, where the axis stops, why, and by which tactic."""
    node, types = plan.source.program.nodes[stop.node], plan.source.program.types
    ends = tuple(types[value] for value in (*node.operands, *node.results))
    left = None if stop.weight is None else (stop.weight.dim, stop.weight.part)
    return node.op_name, ends, node.region, stop.operand, stop.axis, stop.dim, stop.factor, stop.reason, stop.tactic, left


def _tried(plan: State, alike: Sequence[BlockedOp], changes: Iterable[Change]) -> Iterator[tuple[Cure, State]]:
    """Yields the changes after which none of these stops is open, as cures, each with the plan that it makes."""
    for change, made in helpful_edits(plan, changes, lambda made: any(is_open(made, each) for each in alike)):
        number = len(plan.actions) if change.number is None else change.number
        place = "" if change.number is None else f"{'before' if change.keeps else 'instead of'} {plan.cited(number)}"
        costs = bytes_per_device(made), flops_per_device(made)
        yield Cure(change.why, made.actions[number].text, place, *costs, change, plan), made


def _changes(plan: State, alike: Sequence[BlockedOp]) -> Iterator[Change]:
    """Yields the changes to try first for stops that are alike, chosen by the indices of the op."""
    stop, nodes = alike[0], plan.source.program.nodes
    node, tactic, axis = nodes[stop.node], plan.actions[stop.tactic], str(stop.axis)
    if plan.table.ways_across(stop):
        yield Change(partial(propagate, axis=axis, split=True), why="split the axis")
    if tactic.values and _fits(plan.table, stop, node, stop.factor, padded=True):
        yield from _otherwise("have it padded", plan, stop, "padded", False, True)
    if (blocks := _one_block(stop)) is not None and _fits(plan.table, stop, node, blocks):
        yield from _otherwise("have one block on each device", plan, stop, "block", stop.factor.stride, None)
    for position, dim in _other_dims(plan, stop, node):
        values = _pattern_of(plan, [nodes[each.node].end(position) for each in alike])
        yield Change(partial(tile, values=values, dim=dim, axis=axis), why="tile another dim here")


def _in_turn(plan: State, alike: Sequence[BlockedOp]) -> Iterator[Change]:
    """Yields a tactic that tiles weights in blocks in turn, so that each device has some of each of their parts."""
    stop, weights = alike[0], [each.weight for each in alike if each.weight is not None]
    block, rest = divmod(weights[0].part, stop.size)
    if not rest:
        values = _pattern_of(plan, [weight.value for weight in weights])
        step = partial(tile, values=values, dim=weights[0].dim, axis=str(stop.axis), block=block)
        yield Change(step, stop.tactic, keeps=True, why="tile its parts in turn")


def _otherwise(why: str, plan: State, stop: BlockedOp, name: str, old: object, new: object) -> Iterator[Change]:
    """Yields the tactic whose claim stops with another value for one of its arguments, if it has that argument."""
    redo: object = plan.actions[stop.tactic].redo
    if isinstance(redo, partial):
        given: Mapping[str, object] = redo.keywords
        if name in given and given[name] == old:
            yield Change(partial(cast(PlanStep, redo), **{name: new}), stop.tactic, why=why)
    elif is_dataclass(redo) and name in {each.name for each in fields(redo)} and getattr(redo, name) == old:
        yield Change(cast(PlanStep, replace(redo, **{name: new})), stop.tactic, why=why)


def _gathered_once(plan: State, alike: Sequence[BlockedOp]) -> Iterator[Change]:
    """Yields a tactic that keeps the values whole from here on."""
    values, step = _replicating_step(plan, alike)
    if _is_wanted(plan, alike) and all(plan.table.axes[alike[0].axis].values[value] is None for value in values):
        yield Change(step, why="if all of it is needed anyway, gather it once")


def _on_fewer(plan: State, alike: Sequence[BlockedOp]) -> Iterator[Change]:
    """Yields the tactic that stops, on a part of the axis."""
    stop = alike[0]
    size = _fewer(plan, stop, plan.source.program.nodes[stop.node])
    if plan.actions[stop.tactic].values and size is not None:
        yield from _otherwise("use fewer devices", plan, stop, "axis", str(stop.axis), f"{stop.axis}.0:{size}")


def _undoing(plan: State, alike: Sequence[BlockedOp]) -> Iterator[Change]:
    """Yields a tactic that keeps the values whole: before the tactic that tiles them, or in its place if it tiles no others."""
    stop = alike[0]
    values, step = _replicating_step(plan, alike)
    claimed = set(plan.actions[stop.tactic].values)
    if _is_wanted(plan, alike) and stop.tactic >= plan.own and (claimed.isdisjoint(values) or claimed == set(values)):
        why = "if all of it is needed anyway, keep it replicated"
        yield Change(step, stop.tactic, claimed.isdisjoint(values), why)


_WAYS = _changes, _on_fewer, _gathered_once, _undoing
"""The kinds of changes, in the order of trial. A kind is tried only if none before it cures the stop."""


def _is_wanted(plan: State, alike: Sequence[BlockedOp]) -> bool:
    """Whether the op needs all of the values, as a sort of one dim does, so that no change of the program would help."""
    return alike[0].reason == WANTED_WHOLE or not advice(plan.source.program.nodes[alike[0].node])


def _replicating_step(plan: State, alike: Sequence[BlockedOp]) -> tuple[Sequence[ValueId], PlanStep]:
    """The values at which the axis stops, and a step that replicates them."""
    values = [plan.source.program.nodes[each.node].end(each.operand) for each in alike]
    return values, partial(replicate, values=_pattern_of(plan, values), axis=str(alike[0].axis))


def _pattern_of(plan: State, values: Sequence[ValueId]) -> Patterns:
    """A pattern for these values that matches no others; if there is none, all of their names."""
    addresses = plan.source.addresses
    names = list(dict.fromkeys(addresses.names[value] for value in values))
    if len(names) == 1:
        return names[0]
    split = [re.split(r"(\d+)", name) for name in names]
    # Values outside of scopes that have no name but that of their op are named one by one.
    if len({len(parts) for parts in split}) == 1 and all("/" in name for name in names if name in addresses.by_op):
        pattern = "".join(parts[0] if len(set(parts)) == 1 else "*" for parts in zip(*split, strict=True))
        if set(addresses.one(pattern).values()) == set(values):
            return pattern
    return names


def advice_for_whole(node: Node) -> str:
    """The advice to define user code by `pt.define`; empty for other ops, and for primitives that must run unpartitioned."""
    if node.op_name != "whole" or (node.signature.own and not node.signature.once) or not node.results:
        return ""
    primitive = str(node.params["primitive"])
    if "pt.define" not in REASONS.get(primitive, "pt.define"):
        return ""
    form = '@pt.define("f(x)   out[i.., j:] = @(x[i.., j:])")'
    return f"say along which dims it can run in parts, on the function that calls it: {form}"


def _fits(table: Table, stop: BlockedOp, node: Node, factor: Factor, padded: bool = False) -> bool:
    """Whether some index of the dim at which the axis stops accepts this factor."""
    return _takes(table, node, node.signature.dims_of(stop.operand)[stop.dim], factor, padded)


def _takes(table: Table, node: Node, digits: tuple[SubIndex, ...], factor: Factor, padded: bool = False) -> bool:
    found = ((digit.at, digit.inward(factor, padded, node.signature.shifts)) for digit in digits)
    return any(index is not None and table.misfit(node, at, index) is None for at, index in found)


def _one_block(stop: BlockedOp) -> Factor | None:
    """The stop's factor with one block on each device, if it has blocks in turn; otherwise, or if none divides, None."""
    return None if not stop.factor.is_in_turn(stop.extent) else stop.factor.even(stop.extent, padded=False)


def _fewer(plan: State, stop: BlockedOp, node: Node) -> int | None:
    """The greatest number of devices, less than the axis has, in whose blocks the op can run; None if there is none."""
    if not isinstance(stop.axis, Axis) or stop.factor.has_halo or stop.factor.span < stop.extent:
        return None
    others = replace(plan.table, axes={axis: table for axis, table in plan.table.axes.items() if axis != stop.axis})
    sizes = (size for size in range(stop.size - 1, 1, -1) if stop.size % size == 0)
    parts = ((size, Factor(SubAxis(stop.axis, (size, stop.size // size), 0), stop.factor.span // size)) for size in sizes)
    return next((size for size, part in parts if _fits(others, stop, node, part)), None)


def _other_dims(plan: State, stop: BlockedOp, node: Node) -> Iterator[tuple[int, int]]:
    """Yields other dims that the axis could tile, of the op's results or of the value that it reads: position and dim."""
    read = [stop.operand] if stop.operand >= 0 and plan.source.program.producer[node.end(stop.operand)] >= 0 else []
    stopped = {digit.at for digit in node.signature.dims_of(stop.operand)[stop.dim]}
    for position in (*range(-1, -1 - len(node.results), -1), *read):
        value = node.end(position)
        for dim, digits in enumerate(node.signature.dims_of(position)):
            if {digit.at for digit in digits} & stopped:
                continue
            factor = next_factor(plan.table, value, dim, stop.axis)
            if factor is not None and _takes(plan.table, node, digits, factor):
                yield position, dim
