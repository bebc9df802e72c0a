"""`plan.explain`: why values have their layouts, why a collective runs, and what a conflict is about, step by step.

w1: f32[data*2, 16]
  dim 0 on `data`: decided by 2: tile('w1', 0, 'data')
  for `dot_general` at train.py:12: f32[8, 16] by all_gather over (data)
    `dot_general` already uses `data` by 1: tile('x', 0, 'data'), which was earlier than 2: tile('w1', 0, 'data')
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...dialects.definitions import printer
from ...dialects.ground.amounts import of_bytes, of_seconds
from ...dialects.ground.errors import Error
from ...dialects.ranges.algebra import Place
from ...rewrites.decide.causes import is_own, summed_ops
from ...rewrites.decide.decide import Move, nearly_elsewhere
from ...rewrites.decide.device_sets import coordinates
from ...rewrites.decide.price import START
from ...rewrites.decide.table import WHOLE, Claim
from ...rewrites.program.program import NO_NODE, NO_VALUE, Node, NodeId, ValueId
from ..advice.conflicts import Conflict, claims_text, its_own, met_at
from ..advice.open_stops import open_stops, passed_stops
from ..advice.stops import Stop, stops
from ..cost.collectives import Collective, bytes_per_device, end_of, of_move, of_relaid, use_of
from ..cost.device_sets import made_again, reason, relaid, transfers, where_given
from ..cost.flops import in_blocks, shown_op_name, work
from ..cost.memory import peak_bytes
from ..cost.op_strategies import lines
from ..cost.relocations import because, parameter, relocated_ops
from ..inputs.lines import SourceLine, at_line
from ..inputs.message_language import all_of, step
from ..inputs.names import Patterns
from ..plan.claims import each_trip
from ..plan.source_lines import line_of, line_of_op
from ..plan.state import State
from ..views.grouping import grouped
from ..views.listing import starred
from ..views.view import Part, View
from .loops import sent_once

MOST_OPS = 3
"""For a propagated claim, the most ops listed at which it loses."""
MOST_LINES = 40
"""The most lines that the text of an explanation has."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One line of an explanation: its text, its indentation, its source line, and its tactics by number."""

    text: str
    depth: int = 0
    source: SourceLine | None = None
    tactics: tuple[int, ...] = ()
    """The tactics that are the reason, counted from 1 as in `plan.trace`; empty if there are none."""

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.text}"


class Explanation(View):
    """The answer of `plan.explain`. `steps` holds all reasons in order; the text shows layers that are alike once."""

    def __init__(self, steps: Iterable[Reason], whole: bool = False) -> None:
        self.steps, self.whole = tuple(steps), whole

    def all(self) -> Explanation:
        """Returns the same explanation, whose text shows all steps."""
        return Explanation(self.steps, whole=True).on(self.axes)

    def parts(self) -> Sequence[Part]:
        if self.whole:
            return ["\n".join(map(str, self.steps))]
        alike = grouped(self._paragraphs(), starred).items()
        shown = [some[0] if len(some) == 1 else f"{name}\n  ({len(some)} alike)" for name, some in alike]
        text = "\n\n".join(shown).splitlines()
        more = [f"and {len(text) - MOST_LINES:,} lines more: see {all_of('`.steps`')}"] if len(text) > MOST_LINES else []
        return ["\n".join([*text[:MOST_LINES], *more])]

    def _paragraphs(self) -> Iterator[str]:
        starts = [at for at, step in enumerate(self.steps) if step.depth == 0]
        for start, end in zip(starts, [*starts[1:], len(self.steps)], strict=True):
            yield "\n".join(map(str, self.steps[start:end]))

    def __contains__(self, text: str) -> bool:
        return text in "\n".join(map(str, self.steps))


def explain(plan: State, what: Patterns | Collective | Conflict | Stop) -> Explanation:
    """Explains values, a collective, a conflict or a stop. Raises Error for one of another plan."""
    match what:
        case Stop():
            return Explanation(_stop(plan, what))
        case Collective():
            return Explanation(_collective(plan.decided, what))
        case Conflict():
            return Explanation(_conflict(plan, what))
        case _:
            return Explanation(_values(plan.decided, what))


def _values(plan: State, values: Patterns) -> Iterator[Reason]:
    """Yields a paragraph for each value that the patterns match."""
    found = plan.source.addresses.find(values)
    moves = grouped(plan.decisions.moves, lambda move: move.value)
    carried = {axis: _lost_ahead(plan, axis, moves) for axis in plan.table.axes}
    for name, value in found.items():
        yield from _layout_steps(plan, name, value, carried)
        for move in moves.get(value, ()):
            yield from _moved(plan, move)


def _collective(plan: State, each: Collective) -> Iterator[Reason]:
    """Explains a collective: the value and who placed it, then the op that needs it, or the ops that make its sum."""
    moves = plan.decisions.moves
    if each.move < 0 and any(each in of_relaid(plan, relay) for relay in relaid(plan)):
        yield Reason(str(each), 0, each.source, each.tactics)
        return
    if not 0 <= each.move < len(moves) or each not in of_move(plan, each.move):
        raise Error("this collective is not one of this plan's", helps=["take one of plan.collectives()"])
    move = moves[each.move]
    yield Reason(str(each), 0, each.source, each.tactics)
    axes = tuple(part for axis in each.axes for part in plan.mesh.named(axis))
    terms = summed_ops(plan.decisions, move) if each.kind in ("all_reduce", "reduce_scatter") else []
    if terms:
        yield from _terms(plan, terms, axes)
        waits = plan.source.addresses.names[move.value]
        if not any(move.value in term.results for term in terms):
            what = "the sum waits" if len(terms) == 1 else f"these {len(terms)} sums are added and wait"
            yield Reason(f"{what} through linear ops, up to `{waits}`", 1, line_of(plan, move.value, None))
        if each.kind == "reduce_scatter":
            yield from _accumulated(plan, terms, axes)
    else:
        yield from _source(plan, move, axes)
    node = use_of(plan, move) if move.uses else None
    target, where = plan.layout_text(move.value, move.target), each.used
    if node is None:
        yield Reason(f"{each.use} has it as {target}", 1)
    elif node.is_border:
        what = "branch" if node.op.name == "lax.cond" else "loop"
        yield Reason(f"the {what} that reads it{at_line(where)} has it as {target}", 1, where)
    elif node not in terms:
        yield Reason(f"`{shown_op_name(node)}` reads it as {target}", 1, where)
        yield from _op(plan, node, axes, "computes")
        yield from (Reason(text, 2, where) for axis in axes if (text := _lost(plan, move, axis)))
    yield from _other_uses(plan, move, axes)
    yield from _each_trip_instead(plan, move)
    yield from _ahead(plan, move)


def _other_uses(plan: State, move: Move, axes: Sequence[Place]) -> Iterator[Reason]:
    """Yields the further ops that read the moved value and run in full because of a conflict."""
    nodes = plan.source.program.nodes
    for node in (nodes[number] for number in dict.fromkeys(number for number, _ in move.uses[1:]) if number < len(nodes)):
        where = line_of_op(plan, node)
        for axis in axes if node is not use_of(plan, move) else ():
            if said := met_at(plan, node.number, NO_VALUE, axis):
                yield Reason(f"`{node.op_name}`{at_line(where)} reads it too, because of {said}", 1, where)
                yield from _gain(plan, node, axis, 2)


def _terms(plan: State, terms: Iterable[Node], axes: Sequence[Place]) -> Iterator[Reason]:
    """Yields the ops that make the terms of a sum. Those of layers that are alike are shown once."""
    reasons = (tuple(_op(plan, node, axes, "sums")) for node in terms)
    alike = grouped(reasons, lambda some: tuple(starred(each.text) for each in some))
    for (first, *rest), *others in alike.values():
        yield replace(first, text=f"{first.text} ({len(others) + 1} alike)") if others else first
        yield from rest


def _accumulated(plan: State, terms: Sequence[Node], axes: Collection[Place]) -> Iterator[Reason]:
    """Yields what a device holds while a sum waits for the end of a loop, or why it does not wait."""
    nodes, sums = plan.source.program.nodes, {value for term in terms for value in term.results}
    several = [each for each in plan.decisions.accumulated if each.axis in axes]
    for each in {each.carry: each for each in several}.values():
        if not any(sums & {*nodes[number].operands} for number in each.nodes):
            continue
        over = " and ".join(f"`{other.axis}`" for other in several if other.carry == each.carry)
        stacked = ", and what an inner loop stacks for it," if any(nodes[n].op_name == "collect" for n in each.nodes) else ""
        carry = plan.source.addresses.names[nodes[each.carry].results[0]]
        holds = f"`{carry}`{stacked} undivided over {over}: {each.more:,} bytes more"
        if each.fits:
            yield Reason(f"until the loop ends, a device holds {holds}", 1)
        else:
            room = f"a device has {plan.mesh.chip.memory:,} bytes of memory"
            yield Reason(f"each trip scatters it, as {room}: until the loop ends, a device would hold {holds}", 1)


def _source(plan: State, move: Move, axes: Iterable[Place]) -> Iterator[Reason]:
    """Yields the layout that a value leaves, and for each axis the tactic that placed it."""
    name, made = plan.source.addresses.names[parameter(plan, move.value)], line_of(plan, move.value, None)
    for axis in axes:
        claim = plan.table.claim(move.value, axis)
        by = "" if claim is None or claim.at == WHOLE else f", on `{axis}` by {plan.cited(claim.tactic)}"
        tactics = () if claim is None else (claim.tactic + 1,)
        yield Reason(f"`{name}` is {plan.layout_text(move.value, move.source.with_pending(()))}{by}", 1, made, tactics)


def _op(plan: State, node: Node, axes: Iterable[Place], does: str) -> Iterator[Reason]:
    """Yields an op's definition, and for each axis the index that it is on."""
    where, definition = line_of_op(plan, node), node.signature.definition
    if node.op_name == "whole":
        yield Reason(f"`{shown_op_name(node)}`{at_line(where)} runs unpartitioned, or on one device", 1, where)
        return
    text = "   ".join(printer.definition(definition).split("   ")[:2])
    yield Reason(f"`{node.op_name}`{at_line(where)} {does} {text}", 1, where)
    for axis in axes:
        claim = plan.decisions.placements.claim(node.number, axis)
        if claim is None or axis not in plan.decisions.placements.axes(node):
            yield Reason(f"no index of it is on `{axis}`: all of its devices run it in full", 2)
            if said := met_at(plan, node.number, NO_VALUE, axis):
                yield Reason(f"because of {said}", 3, where)
            yield from _gain(plan, node, axis)
            continue
        folded = "the summed index" if node.signature.indices[claim.at].monoid is not None else "the index"
        text = f"{folded} of {_dims(plan, node, claim)} is on `{axis}` by {plan.cited(claim.tactic)}"
        yield Reason(text, 2, where, (claim.tactic + 1,))
        yield from _gain(plan, node, axis)


def _gain(plan: State, node: Node, axis: Place, depth: int = 3) -> Iterator[Reason]:
    """Yields what an op saves because it runs elsewhere than tactics say, or would save."""
    placements, names = plan.decisions.placements, plan.source.addresses.names
    if (moved := placements.elsewhere.get(node.number, {}).get(axis)) is not None:
        name = names[parameter(plan, moved.value)]
        yield Reason(f"this saves {_time(moved.saved)}, counted for all ops that run elsewhere for `{name}`", depth)
    elif (nearly := nearly_elsewhere(plan.decisions).get(node.number, {}).get(axis)) is not None:
        along = "on all devices" if nearly.claim is None else f"along {_dims(plan, node, nearly.claim)}"
        few = f"too little to leave the order of the tactics: the start of a collective takes {_time(START)}"
        yield Reason(f"{along} it would save {_time(nearly.saved)}, {few}", depth)


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} microseconds"


def _dims(plan: State, node: Node, claim: Claim) -> str:
    """The places of an index in operands and results: "dim 1 of `x` and dim 0 of `w`"."""
    names = plan.source.addresses.names
    sides = [(node.operands, node.signature.operand_at), (node.results, node.signature.result_at)]
    found = [
        f"dim {at[claim.at].dim} of `{names[value]}`"
        for values, tables in sides
        for value, at in zip(values, tables, strict=True)
        if claim.at in at
    ]
    return " and ".join(dict.fromkeys(found)) or "no dim"


def _conflict(plan: State, each: Conflict) -> Iterator[Reason]:
    """Explains a conflict: the claims that contradict each other, what it costs to leave it open, and the ways out."""
    its_own(plan, each)
    yield Reason(f"conflict on `{each.axis}` in {each.op}{at_line(each.source)}", 0, each.source)
    for text, tactic in zip(each.claims, each.tactics, strict=True):
        yield Reason(text, 1, each.source, (tactic,))
    yield Reason(each.left_open, 1)
    yield from (Reason(f"way out: {way!r}", 1) for way in each.resolutions)


def _stop(plan: State, stop: Stop) -> Iterator[Reason]:
    """Explains a stop: whose claim stops, at which index of the op, what runs in full because of it, and the cures."""
    if stop.first not in (*open_stops(plan), *passed_stops(plan)):
        raise Error("this stop is not an open one of this plan", helps=["take one of plan.blocked"])
    node, tactic = plan.source.program.nodes[stop.first.node], stop.first.tactic
    yield Reason(stop.title, 0, stop.source, (tactic + 1,))
    side = "arrives with" if stop.first.operand >= 0 else "is wanted with"
    side = side if stop.first.weight is None else "would arrive with"
    said = f"`{stop.value}` {side} `{stop.axis}` on dim {stop.dim} by {plan.cited(tactic)}"
    yield Reason(said, 1, stop.source, (tactic + 1,))
    yield from _op(plan, node, (), "computes")
    yield Reason(stop.cost, 1, stop.source)
    yield from (Reason(f"help: {line.strip()}", 1) for each in stop.helps for line in each.splitlines()[:1])


def _layout_steps(plan: State, name: str, value: ValueId, carried: dict[Place, dict[ValueId, list[Move]]]) -> Iterator[Reason]:
    """Yields a value's layout, the tactic that placed each axis, and the later ops at which that claim loses."""
    program, placements = plan.source.program, plan.decisions.placements
    made = line_of(plan, value, None)
    yield Reason(f"{name}: {plan.layout_text(value, placements.homes[value], placements.sources.get(value, ()))}", 0, made)
    for axis, table in plan.table.axes.items():
        claim = plan.table.claim(value, axis)
        if claim is None:
            yield from _left_whole(plan, value, axis)
            yield from _contradicted(plan, value, axis)
            yield from _stopped(plan, value, axis)
            continue
        what = "replicated along" if claim.at == WHOLE else f"dim {claim.at} on"
        how = "said" if table.values[value] is not None and program.producer[value] >= 0 else "decided"
        yield Reason(f"{what} `{axis}`: {how} by {plan.cited(claim.tactic)}", 1, made, (claim.tactic + 1,))
        yield from _reconciled(plan, program.producer[value], axis)
        for move in carried[axis].get(value, ()):
            if move.value != value:
                lost = f"further on, for `{plan.source.addresses.names[move.value]}`: {_lost(plan, move, axis)}"
                yield Reason(lost, 2, line_of(plan, move.value, use_of(plan, move)))
    yield from _device_sets(plan, value)
    yield from _rim(plan, value)
    for text, node in (*relocated_ops(plan, value), *lines(plan, value)):
        place = line_of(plan, value, node)
        yield Reason(text.format(at_line(place)), 1, place)


def _device_sets(plan: State, value: ValueId) -> Iterator[Reason]:
    """Yields on which of several device sets a value is made, and to which it crosses for which op."""
    if (sets := plan.table.sets) is None:
        return
    node = plan.source.program.maker(value)
    why = reason(plan, sets, node) if node is not None else where_given(plan, sets, value)
    yield Reason(f"on {coordinates(sets.of(value))}: {why}", 1, line_of(plan, value, None))
    first = NO_NODE if node is None else NodeId(plan.source.units[node.number])
    if said := met_at(plan, first, NO_VALUE, plan.mesh.place(plan.mesh.apart[0])):
        yield Reason(said, 2, line_of(plan, value, None))
    for each in transfers(plan):
        if each.number == value:
            text = f"crosses to {each.target} for `{each.use}`{at_line(each.line)}, which runs there: {each.why}"
            yield Reason(f"{text}; each device receives {each.bytes:,} bytes", 1, each.line)
    for each in made_again(plan):
        if value in each.node.results:
            takes, crossing = (_time(way.seconds) for way in (each.ways.again, each.ways.crossing))
            yield Reason(f"made again on {coordinates(each.on)}, which takes {takes}: to cross would take {crossing}", 1)


def _reconciled(plan: State, number: NodeId, axis: Place) -> Iterator[Reason]:
    """Explains which of the program's claims an op took where several met: the one that costs least."""
    if (met := plan.table.reconciled.get((number, NO_VALUE, axis))) is not None:
        node = plan.source.program.nodes[number]
        claims = "; ".join(claims_text(plan, met))
        yield Reason(f"of what is asked of `{node.op_name}`, this costs a device the least: {claims}", 2)


def _left_whole(plan: State, value: ValueId, axis: Place) -> Iterator[Reason]:
    """Yields the claims of the program on an argument that want the axis on different dims."""
    if (met := plan.table.reconciled.get((NO_NODE, value, axis))) is not None:
        claims = "; ".join(claims_text(plan, met))
        yield Reason(f"whole along `{axis}`, and each use takes its part of it: {claims}", 1)


def _contradicted(plan: State, value: ValueId, axis: Place) -> Iterator[Reason]:
    """Yields the conflict that keeps a value, or the op that makes it, off an axis."""
    number = plan.source.program.producer[value]
    key = (number, NO_VALUE) if number >= 0 else (NO_NODE, value)
    if said := met_at(plan, *key, axis):
        yield Reason(f"whole along `{axis}`, because of {said}", 1, line_of(plan, value, None))


def _stopped(plan: State, value: ValueId, axis: Place) -> Iterator[Reason]:
    """Yields the stop because of which a tactic leaves an argument whole, and its cures."""
    if (stop := plan.once(_weights).get((value, str(axis)))) is not None:
        tactic = stop.first.tactic
        yield Reason(f"left whole by {plan.cited(tactic)}: {stop.title}", 1, stop.source, (tactic + 1,))
        yield from (Reason(f"help: {line.strip()}", 2) for each in stop.helps for line in each.splitlines()[:1])


def _weights(plan: State) -> dict[tuple[ValueId, str], Stop]:
    """The stops that leave arguments whole, by argument and axis."""
    left = any(each.weight is not None for each in open_stops(plan))
    found = ((stop.first.weight, stop) for stop in (stops(plan) if left else ()))
    return {(weight.value, stop.axis): stop for weight, stop in found if weight is not None}


def _rim(plan: State, value: ValueId) -> Iterator[Reason]:
    """Yields what it costs to compute a value, and what it is computed from, in windows that overlap."""
    placed = plan.decisions.placements.nodes

    def in_windows(node: Node) -> bool:
        return any(factor.has_halo for _, factor in placed[node.number].placement)

    found = [*plan.source.program.upstream([value], in_windows)]
    if not found:
        return
    windows, blocks = work(plan, found), work(plan, found, in_blocks)
    if windows != blocks:
        yield Reason(
            f"computed in windows that overlap, with what it is computed from: {windows} on a device instead of {blocks}", 1
        )


def _moved(plan: State, move: Move) -> Iterator[Reason]:
    """Explains one redistribution, with the earlier tactic that gave its use another layout."""
    node = use_of(plan, move)
    target = plan.layout_text(move.value, move.target)
    use = end_of(move) if node is None else f"`{node.op_name}`"
    place = line_of(plan, move.value, node)
    reasons = dict.fromkeys(each for step in move.path.steps if (each := because(plan, move, step)))
    said = f" ({'; '.join(reasons)})" if reasons else ""
    yield Reason(f"for {use}{at_line(place)}: {target} by {move.path}{said}", 1, place)
    for axis in plan.table.axes:
        if said := _lost(plan, move, axis):
            yield Reason(said, 2, place)


def _each_trip_instead(plan: State, move: Move) -> Iterator[Reason]:
    """Compares a gather before a loop with one in each of its trips: bytes and memory of both."""
    program, node = plan.source.program, use_of(plan, move) if move.uses else None
    value, around = parameter(plan, move.value), {each.value for each in plan.once(sent_once)}
    enters = node is not None and node.is_border and program.maker(value) is None
    if not enters and move.value not in around:
        return
    name = plan.source.addresses.names[value]
    try:
        other = each_trip(plan, name)
    except Error:
        return
    costs = [
        f"{bytes_per_device(each):,} bytes received by a device in a call, {peak_bytes(each):,} stored"
        for each in (plan, other)
    ]
    sent = "scattered once, after the loop" if move.pending else "gathered once, before the loop"
    yield Reason(f"{sent}: {costs[0]}; in every trip, by {step(f'EachTrip({name!r})')}: {costs[1]}", 1)


def _ahead(plan: State, move: Move) -> Iterator[Reason]:
    """Says with which use a gather starts, how long a device waits for it, and how long if less, or more, were ahead."""
    if (ahead := plan.decisions.ahead.get(move.region)) is None or not move.communicates:
        return
    if move not in ahead.seconds:
        yield Reason("it waits for no use: it is small, so a compiler may gather it once, and hold it for all uses", 1)
        return
    chip = plan.mesh.chip.name
    waits = f"a device of {chip} is estimated to wait {of_seconds(ahead.seconds[move])} for it"
    if not move.waits and move.trip_ahead is None:
        yield Reason(waits, 1)
        return
    host = move.host or move
    node = use_of(plan, host)
    where = line_of_op(plan, node) if node is not None else None
    name = plan.source.addresses.names[parameter(plan, host.value)]
    whose = "its use" if host is move and move.trip_ahead is None else f"the use of `{name}`"
    when = " in the trip before" if move.trip_ahead is not None else ""
    yield Reason(f"it starts with {whose}{at_line(where)}{when}: {waits}", 1, where)
    tried = sorted(ahead.exposed)
    beside = [tried[at] for at in (tried.index(ahead.bytes) - 1, tried.index(ahead.bytes) + 1) if 0 <= at < len(tried)]
    others = ", ".join(f"{of_seconds(ahead.exposed[each])} with {of_bytes(each)}" for each in beside)
    now = f"{of_seconds(ahead.exposed[ahead.bytes])} with {of_bytes(ahead.bytes)} gathered ahead"
    place = "in all trips of the loop" if move.region else "in a call"
    yield Reason(f"{place} a device waits {now} ({others}); there is memory for {of_bytes(ahead.room)}", 1)


def _lost(plan: State, move: Move, axis: Place) -> str:
    """Names the earlier tactic that already uses the axis in the op that reads the value; empty if there is none."""
    node = use_of(plan, move)
    if node is None or not move.uses or is_own(move):
        return ""
    claim, own = plan.decisions.placements.claim(node.number, axis), plan.table.claim(move.value, axis)
    if claim is None or own is None or own.at == WHOLE or claim.tactic >= own.tactic:
        return ""
    first, later = (plan.cited(each.tactic) for each in (claim, own))
    return f"`{node.op_name}` already uses `{axis}` by {first}, which was earlier than {later}"


def _lost_ahead(plan: State, axis: Place, moves: dict[ValueId, list[Move]]) -> dict[ValueId, list[Move]]:
    """Maps each value to the nearest later redistributions at which an earlier tactic wins over its claim.

    One backward sweep follows each claim through the ops to which the same tactic has carried it.
    """
    program, claims = plan.source.program, plan.table.axes[axis].nodes
    lost = {value: own for value, of in moves.items() if (own := [move for move in of if _lost(plan, move, axis)])}
    for node in reversed(program.nodes):
        claim = claims[node.number]
        behind = [move for value in node.results for move in lost.get(value, ())]
        if claim is None or not behind:
            continue
        for value in node.operands:
            own = plan.table.claim(value, axis)
            if own is not None and own.at != WHOLE and own.tactic == claim.tactic:
                here = lost.setdefault(value, [])
                here += [move for move in behind if move not in here][: MOST_OPS - len(here)]
    return lost
