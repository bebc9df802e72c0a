"""Refuses wrong decisions of a text: placements that do not fit, sums that an op cannot carry, moves that are missing.

#plan.sum<{+data}> at `lax.tanh`   -->   error: `tanh` cannot carry the sum {+data}: it is not linear in its operands
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.ground.dtypes import itemsize
from ...dialects.ground.errors import Error
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Loop
from ...dialects.ranges.factor import Factor
from ..decide.ahead import may_start_a_trip_ahead, scans
from ..decide.decide import SELECTED, Decisions, Move, first_use, mismatches
from ..decide.deferred_reductions import DeferredReduction, is_linear, is_sum, kept
from ..decide.placements import Placements
from ..decide.table import misfit
from ..program.program import Node, NodeId
from ..redistribute.path_text import path_text
from ..redistribute.search import path

Placement = Sequence[tuple[int, Factor]]


def text_of(node: Node) -> str:
    """The op of a node in one line, as errors cite it."""
    return str(node.op).split(" attributes {")[0].splitlines()[0]


def refused(node: Node | None, title: str, *helps: str) -> Error:
    """The error for a wrong decision at an op."""
    return Error(title, notes=[] if node is None else [f"the op is `{text_of(node)}`"], helps=helps)


def check_factors(node: Node, placement: Placement) -> None:
    """Raises Error unless the factors of an op's indices fit, all of them together."""
    indices = node.signature.indices
    axes = [factor.axis for _, factor in placement]
    for at, factor in placement:
        if at >= len(indices):
            known = f"its indices are 0 to {len(indices) - 1}" if indices else "it has no index that can be placed"
            raise refused(node, f"`{node.op_name}` has no index {at}", known)
        if axes.count(factor.axis) > 1:
            raise refused(node, f"`{node.op_name}` is placed on `{factor.axis}` twice", "an op uses an axis once")
    for at in dict.fromkeys(at for at, _ in placement):
        factors = [factor for index, factor in placement if index == at]
        rivals = {index for index, _ in placement} & node.signature.rivals.get(at, set())
        reason = misfit(node.signature, at, factors) or (rivals and "another index of the same dim is placed")
        if reason:
            placed, (one, *_) = " and ".join(map(str, factors)), factors
            why = str(reason).format(block=one.stride, size=one.size)
            title = f"`{node.op_name}` cannot be placed on `{placed}` at index {at}: {why}"
            raise refused(
                node, title, f"the index has {indices[at].extent} values; leave it whole, or take a factor that divides it"
            )


def check_sums(placements: Placements, carried: Mapping[NodeId, DeferredReduction]) -> None:
    """Raises Error unless every op carries only sums in which it is linear."""
    for number, carry in carried.items():
        _check_sum(placements, placements.program.nodes[number], carry)


def check_moves(decisions: Decisions) -> None:
    """Raises Error unless every value moves as its uses need it, and not otherwise."""
    _check_homes(decisions)
    _check_uses(decisions)
    for move in decisions.moves:
        _check_source(decisions, move)
        _check_start(decisions, move)


def _check_sum(placements: Placements, node: Node, carry: DeferredReduction) -> None:
    """Whether the op can carry this sum: it is linear in its pending operands, together with those that count once."""
    program, said = placements.program, f"the sum {_sum(carry)}"
    once, axes = dict(carry.once), {each.axis for each in carry.pend}
    cure = "take its `plan.sums` off, and move its operands: the sum then resolves before it"
    positions = node.positions(placements.sources)
    if not positions:
        raise refused(node, f"`{node.op_name}` cannot carry {said}: none of its operands is pending", cure)
    for at, value in enumerate(node.operands):
        own = placements.sources.get(value, ())
        missing = {each.axis for each in carry.pend if each not in own}
        counts = at in positions or at in once
        in_time = all(isinstance(each.axis, Loop) for each in own)
        if (not in_time and not kept(own, carry.pend)) or (counts and missing != {*once.get(at, ())}):
            title = f"`{node.op_name}` cannot carry {said}: operand {at} is {placements.with_sums(value)}"
            rule = "each operand is pending over all axes of the sum, or counts `once` along those that it lacks"
            raise refused(node, title, f"{rule}; it may be pending over more axes, and resolves over these before")
    if len(node.results) < 1 or not is_sum(carry.pend) or not is_linear(program, node, positions | {*once}):
        raise refused(node, f"`{node.op_name}` cannot carry {said}: it is not linear in its operands", cure)
    if axes & placements.axes(node):
        raise refused(
            node, f"`{node.op_name}` carries {said} and is placed on the same axis", "take the axis off its `plan.place`"
        )
    if placements.nodes[node.number].with_sum(carry.pend) is None:
        raise refused(node, f"`{node.op_name}` carries {said}, and makes of its own blocks what is no sum", cure)


def _sum(carry: DeferredReduction) -> str:
    return f"{{{', '.join(map(str, carry.pend))}}}"


def _check_homes(decisions: Decisions) -> None:
    """Whether the values that are moved where they are made are those that must be, each into its own layout."""
    placements, program = decisions.placements, decisions.placements.program
    needed = {value: (source, placements.homes[value]) for value, source in placements.unsettled()}
    for value, (source, home) in needed.items():
        move = decisions.homes.get(value)
        if move is None or move.target != home or move.source != source:
            title = f"a value is made as {source}, but no move brings it to its own layout {home}"
            raise refused(program.maker(value), title, _write("result 0", program.types[value].dtype, source, home))
    for value, move in decisions.homes.items():
        if value not in needed:
            title = f"a move brings a value to {move.target}, but its own layout is {placements.homes[value]}"
            raise refused(program.maker(value), title, "take the move off, or say `plan.home`")


def _write(end: str, dtype: str, source: Layout, target: Layout) -> str:
    way = path_text(path(source, target, itemsize(dtype)))
    return f"write `#plan.move<NUMBER: {end}: {source} to {target} by {way}>`"


def _check_uses(decisions: Decisions) -> None:
    """Whether each use that needs another layout than the value's own has a move into it, and no other use has one."""
    placements, program = decisions.placements, decisions.placements.program
    needed = mismatches(placements, decisions.carried)
    wanted = {(number, at): (value, layout) for (value, _), uses in needed.items() for number, at, layout in uses}
    for (number, at), (value, layout) in wanted.items():
        move, lies = decisions.at_use.get((number, at)), placements.lies(number, at, value)
        if move is None:
            title = (
                f"{_reader(program.nodes, number)} reads operand {at} as {layout}, but the value is {lies} and does not move"
            )
            raise refused(
                _node(program.nodes, number), title, _write(f"operand {at}", program.types[value].dtype, lies, layout)
            )
        if move.target != layout:
            title = f"{_reader(program.nodes, number)} reads operand {at} as {layout}, but its move leads to {move.target}"
            raise refused(
                _node(program.nodes, number), title, _write(f"operand {at}", program.types[value].dtype, lies, layout)
            )
    for number, at in decisions.at_use:
        if at != SELECTED and (number, at) not in wanted:
            title = f"{_reader(program.nodes, number)} reads operand {at} in its own layout, but a move is said for it"
            raise refused(_node(program.nodes, number), title, "take the move off")


def _reader(nodes: Sequence[Node], number: NodeId) -> str:
    return f"`{nodes[number].op_name}`" if number < len(nodes) else "the program's return"


def _node(nodes: Sequence[Node], number: NodeId) -> Node | None:
    return nodes[number] if number < len(nodes) else None


def _check_start(decisions: Decisions, move: Move) -> None:
    """Whether a move that starts with an earlier use waits for it, and what it reads is there then."""
    program, host = decisions.placements.program, move.during
    if (later := move.trip_ahead) is not None and not (
        later.region == move.region in scans(program) and later.uses and may_start_a_trip_ahead(program, move)
    ):
        title = "a move starts `during` one whose use is not before its own: in a scan, a gather of rows can"
        raise refused(_node(program.nodes, first_use(move)[0]), title, "take `during ...` off")
    if host is None:
        return
    use = first_use(host)
    if not (move.waits and host.waits and host.uses and host.region == move.region):
        title = "a move starts `during` another one, but both have to say `waits`, and to be of uses side by side"
        raise refused(_node(program.nodes, first_use(move)[0]), title, "take `during ...` off")
    if use >= first_use(move) or program.producer[move.value] >= use[0]:
        title = "a move starts `during` another one, whose use is not before its own, or comes before what it moves"
        raise refused(_node(program.nodes, first_use(move)[0]), title, "take `during ...` off")


def _check_source(decisions: Decisions, move: Move) -> None:
    """Whether a move starts where its value lies, or where the move before it ends."""
    placements, uses = decisions.placements, [use for use in move.uses if use[1] != SELECTED]
    if (move.value in decisions.homes and decisions.homes[move.value] is move) or len(uses) < len(move.uses):
        return
    if (before := move.before) is not None:
        start = before.target
    else:
        starting = uses or [use for each in decisions.moves if each.before is move for use in each.uses]
        start = placements.lies(*starting[0], move.value) if starting else placements.with_sums(move.value)
    if move.source != start:
        title = f"a move starts at {move.source}, but the value is {start} there"
        node = next((_node(placements.program.nodes, number) for number, _ in uses), None)
        raise refused(node, title, _write("operand ...", placements.program.types[move.value].dtype, start, move.target))
