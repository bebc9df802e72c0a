"""Stops: where propagation stops, and what that costs. Each device of the axis runs the op in full, on gathered operands.

So do the ops after it, until one is placed on the axis again. Such an op counts for the first op at which the axis stops.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...dialects.ground.amounts import of_bytes, of_flops
from ...dialects.ranges.algebra import Place
from ...rewrites.decide.decide import Move
from ...rewrites.decide.price import Price
from ...rewrites.decide.table import BlockedOp
from ...rewrites.program.program import Node, NodeId, ValueId
from ...rewrites.program.shard_maps import mesh_misfit
from ..cost.collectives import counted
from ..cost.costs import price_over
from ..cost.counts import bytes_received
from ..cost.flops import Flops, on_device, shown_op_name, work
from ..inputs.lines import SourceLine, at_line
from ..inputs.message_language import Question, cure_command, question
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.grouping import grouped
from ..views.listing import Listing, ListingForm
from ..views.view import Cell
from .open_stops import dim_instead, open_stops, passed_stops
from .stop_fixes import Cure, advice, advice_for_whole, cure

MOST_OPS = 4
"""The most ops that a text names."""
TRIED = 5_000
"""In a program with more ops than this, texts do not try ways out."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A dim at which propagation stopped, and the ops that each device of the axis runs in full because of it.

    `runs` names the op, and the ops after it that compute and that are not placed on the axis either. `flops` is what one
    device computes in them in a call; all devices of the axis compute the same. `bytes` is what it receives for that over
    the axis.
    """

    op: str
    value: str
    dim: int
    extent: int
    axis: str
    size: int
    reason: str
    source: SourceLine | None
    runs: tuple[str, ...]
    flops: Flops
    bytes: int
    advice: str
    """A change of the program that would let the axis pass; empty if there is none."""
    passed: str
    """How the plan overcomes the stop, and what a device then receives; empty if it does not."""
    plan: State = field(repr=False, compare=False)
    first: BlockedOp = field(repr=False, compare=False)
    """The first of the stops that are listed as this one."""
    number: int = field(default=0, compare=False)
    """The stop's number in `plan.blocked`."""

    @property
    def price(self) -> Price:
        """What the ops in full cost a device in a call, with what it receives for them. Stops are listed by it."""
        return price_over(self.plan, {(self.axis,): self.bytes}, self.flops.known)

    @property
    def cure(self) -> Cure | None:
        """A tactic that cures the stop, with what a device then receives and computes; None if none is found.

        It is found by trying, once for stops that are alike.
        """
        return None if self.passed else cure(self.plan, self.first)

    @property
    def helps(self) -> Sequence[str]:
        """What to do, with its costs. In a large program nothing is tried, because it would take long."""
        if self.passed:
            return []
        is_large = len(self.plan.source.program.nodes) > TRIED
        found = None if is_large else self.cure
        if found is None:
            return [self.advice] if self.advice else [not_tried()] if is_large else []
        # What changes an earlier tactic cannot be written behind the others.
        write = cure_command(self.number) if found.place else ""
        costs = f"a device then receives {of_bytes(found.bytes)} in a call and computes {found.flops.text(number=of_flops)}"
        return [f"{found}\n    {write}{costs}"]

    @property
    def title(self) -> str:
        """Where propagation stopped, and why, in one sentence."""
        return (
            f"`{self.axis}` ({self.first.axis.amount}) stops at {self.op}{at_line(self.source)}: "
            f"dim {self.dim} of `{self.value}` ({self.extent}): {self.reason}"
        )

    @property
    def cost(self) -> str:
        """What each device runs in full because of the stop, and what it receives for that, or how the plan overcomes it."""
        if self.passed:
            return self.passed
        return f"each device runs {self._ops()} in full: {self._work()}; it receives {of_bytes(self.bytes)} for that"

    def __str__(self) -> str:
        return "\n".join([*map(str, _row(self)), *_below(self)])

    __repr__ = __str__

    def _ops(self) -> str:
        first, *after = (f"`{name}`" for name in self.runs)
        more = [f"{len(after) - MOST_OPS} more"] if len(after) > MOST_OPS else []
        return f"{first}, and then {', '.join([*after[:MOST_OPS], *more])}," if after else first

    def _work(self) -> str:
        parts = f" instead of {of_flops(-(-self.flops.known // self.size))}" if self.flops.known else ""
        return self.flops.text(parts, of_flops)


@dataclass(frozen=True, slots=True)
class WholeOp:
    """A primitive that runs unpartitioned, with its source line. `value` is its result or, of an effect, its operand."""

    primitive: str
    value: str
    source: SourceLine | None
    own: bool = False
    """Whether it runs on mesh axes of its own, with its own collectives, instead of on gathered operands."""
    why: str = ""
    makes: bool = True
    """Whether it has a result. If not, it is only an effect."""
    once: bool = False
    """Whether one device runs it for all devices."""
    bytes: int = 0
    """The bytes that a device receives in a call for its operands. Its flops are unknown."""
    cure: str = ""

    def __repr__(self) -> str:
        where = f" at {self.source}" if self.source is not None and self.source.line else ""
        if self.own:
            runs = "unchanged, on its own mesh axes: its collectives are in `counts().own`"
        elif not self.makes:
            runs = f"unpartitioned, on one device: {self.why or 'it is an effect'}"
        elif self.once:
            runs = f"unpartitioned, on one device: {self.why or 'the others receive its result'}"
        else:
            runs = f"unpartitioned: {self.why or 'it has no definition'}"
        what = f", which {'makes' if self.makes else 'reads'} `{self.value}`," if self.value else ""
        costs = f"\n  each device receives {of_bytes(self.bytes)} for that; what it computes is unknown" if self.bytes else ""
        return f"`{self.primitive}`{where}{what} runs {runs}{costs}" + (f"\n  help: {self.cure}" if self.cure else "")


def not_tried() -> str:
    """The text that stands in for cures which have not been tried."""
    return f"{question(Question.TRY)} tries what could be done"


def stops(plan: State) -> Listing[Stop]:
    """The open stops, the most expensive first; then those that the plan overcomes."""

    def place(each: BlockedOp) -> tuple[object, ...]:
        node = plan.source.program.nodes[each.node]
        value = node.end(each.operand)
        # Ops of one line can stop the same dim of the same value, as two windows of it do.
        return node.op_name, value, each.dim, each.axis, each.reason, str(line_of(plan, value, node))

    alike = grouped(open_stops(plan), place)
    in_full = {axis: _in_full(plan, axis) for axis in {each[0].axis for each in alike.values()}}
    found = (_stop(plan, each, in_full[each[0].axis]) for each in alike.values())
    ordered = sorted(found, key=lambda stop: stop.price, reverse=True)
    ordered += [_stop(plan, each, {}, _overcome(plan, each)) for each in grouped(passed_stops(plan), place).values()]
    return Listing([replace(each, number=at) for at, each in enumerate(ordered)], _SHAPE)


def _row(stop: Stop) -> Sequence[Cell]:
    return [f"{stop.title}\n  {stop.cost}"]


def _below(stop: Stop) -> Sequence[str]:
    return [f"  help: {each}" for each in stop.helps]


_SHAPE = ListingForm("stops", row=_row, below=_below)


def split_text(plan: State) -> str:
    """How the decisions split axes into sub-axes, and what a device then receives; empty if they do not."""
    decisions, mesh = plan.decisions, plan.decided.mesh
    if decisions.unsplit is None:
        return ""
    split = {axis: mesh.split(axis) for axis in plan.mesh.places if axis not in mesh.places}
    said = (f"`{axis}` is split into {' and '.join(f'`{part}`' for part in parts)}" for axis, parts in split.items())
    now, before = (of_bytes(round(price.bytes)) for price in (decisions.price, decisions.unsplit))
    return f"{', '.join(said)}: a device receives {now} in a call, instead of {before}"


def _overcome(plan: State, alike: Sequence[BlockedOp]) -> str:
    """How the decisions overcome stops of one kind."""
    one = alike[0]
    if (dim := dim_instead(plan, one)) is None:
        return split_text(plan)
    node = plan.source.program.nodes[one.node]
    received = received_for(plan, [(each.node, each.operand) for each in alike if each.operand >= 0], one.axis)
    costs = f"which costs less than to gather: it receives {of_bytes(received)} for that"
    return f"`{node.op_name}` runs along dim {dim} instead, {costs}"


def _stop(plan: State, alike: list[BlockedOp], in_full: dict[NodeId, list[Node]], passed: str = "") -> Stop:
    one, program = alike[0], plan.source.program
    node = program.nodes[one.node]
    value = node.end(one.operand)
    nodes = [each for number in dict.fromkeys(stop.node for stop in alike) for each in in_full.get(number, ())]
    wanted = plan.once(_wanted)
    return Stop(
        node.op_name,
        plan.source.addresses.names[value],
        one.dim,
        one.extent,
        str(one.axis),
        one.size,
        one.reason,
        line_of(plan, value, node),
        tuple(dict.fromkeys(shown_op_name(each) for each in nodes if each is node or on_device(plan, each) != 0)),
        work(plan, nodes),
        received_for(plan, [use for each in alike for use in wanted.get((each.node, each.operand, each.axis), ())], one.axis),
        advice(node) if one.weight is None else _apart(plan, one.weight.value),
        passed,
        plan,
        one,
    )


def _apart(plan: State, weight: ValueId) -> str:
    return f"give the parts of `{plan.source.addresses.names[weight]}` a dim of their own"


def _wanted(plan: State) -> dict[tuple[NodeId, int, Place], list[tuple[NodeId, int]]]:
    """For each stop, the operands that its op needs whole because of it. Each operand is counted for one stop only.

    A stop at an operand needs that operand. A stop at a result needs the op's operands, except those at which the axis stops
    too.
    """
    found: dict[tuple[NodeId, int, Place], list[tuple[NodeId, int]]] = {}
    counted = set[tuple[NodeId, int, Place]]()
    for each in sorted(open_stops(plan), key=lambda stop: stop.operand < 0):
        ends = [(each.node, each.operand)] if each.operand >= 0 else [*_reads(plan.source.program.nodes[each.node])]
        found[each.node, each.operand, each.axis] = [end for end in ends if (*end, each.axis) not in counted]
        counted.update((*end, each.axis) for end in ends)
    return found


def _in_full(plan: State, axis: Place) -> dict[NodeId, list[Node]]:
    """Maps each op at which the axis stops to itself and the later ops that are not on the axis, each counted for one stop."""
    program = plan.source.program
    stopped = sorted({each.node for each in open_stops(plan) if each.axis == axis})
    seen, found = set(stopped), {number: [program.nodes[number]] for number in stopped}
    for nodes in found.values():
        # The list grows: after the op come those that read its results, and after them those that read theirs.
        for node in nodes:
            for reader in (reader for value in node.results for reader in program.readers(value)):
                if reader.number not in seen and not plan.decided.placed_on(axis, reader.number):
                    seen.add(reader.number)
                    nodes.append(reader)
    return found


def received_for(plan: State, uses: Iterable[tuple[NodeId, int]], axis: Place | None = None) -> int:
    """The bytes that a device receives in a call to bring these operands into the layouts that their ops want."""
    moves = dict[int, Move]()
    for use in uses:
        move = _move(plan, use)
        while move is not None:
            # The first of several that share collectives counts them.
            move = move.together[0] if move.together else move
            moves[id(move)] = move
            move = move.before
    sent = counted(plan, moves.values())
    if axis is None:
        return bytes_received(sent)
    parts = {*map(str, plan.decided.mesh.split(axis))}
    return bytes_received(each for each in sent if not parts.isdisjoint(each.axes))


def _move(plan: State, use: tuple[NodeId, int]) -> Move | None:
    """The redistribution by which an operand comes to its op, perhaps before ops that only move its elements."""
    program, at_use = plan.source.program, plan.decisions.at_use
    while use not in at_use:
        number = program.producer[program.nodes[use[0]].operands[use[1]]]
        if number < 0 or not program.nodes[number].passes_on:
            return None
        use = number, 0
    return at_use[use]


def wholes(plan: State) -> Listing[WholeOp]:
    """The primitives that run unpartitioned, except those that make a scalar from nothing, which no plan could partition."""
    return Listing((each for _, each in whole_ops(plan)), ListingForm("unpartitioned ops"))


def whole_ops(plan: State) -> Iterator[tuple[Node, WholeOp]]:
    """The same, each with its op."""
    shape = plan.source.program.shape
    for node in plan.source.program.nodes:
        if node.op_name == "whole" and (node.operands or node.signature.own or any(map(shape, node.results))):
            yield node, _whole(plan, node)


def _whole(plan: State, node: Node) -> WholeOp:
    params = node.params
    value = node.main
    mapped = mesh_misfit(params, plan.mesh)
    once = node.signature.once
    return WholeOp(
        str(params["primitive"]),
        plan.source.addresses.names.get(value, ""),
        line_of(plan, value, node),
        bool(node.signature.own) and not once,
        f"{mapped}: run through vmap on replicated arrays" if mapped else str(params.get("why", "")),
        bool(node.results),
        once,
        received_for(plan, _reads(node)),
        advice_for_whole(node),
    )


def _reads(node: Node) -> Iterator[tuple[NodeId, int]]:
    return ((node.number, position) for position in range(len(node.operands)))
