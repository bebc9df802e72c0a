"""`plan.explain`: why values have their layouts, which ops move them, and which tactic lost to an earlier one.

w1: f32[data*2, 16]
  dim 0 on `data`: decided by 2: tile('w1', 0, 'data')
  for `dot_general` at train.py:12: f32[8, 16] by all_gather over (data)
    `dot_general` already uses `data` by 1: tile('x', 0, 'data'), which was earlier; 2: tile('w1', 0, 'data') loses there
"""

from collections.abc import Iterator

from ...rewrites.decide.decide import Move
from ...rewrites.decide.table import WHOLE
from ...rewrites.program.program import Node
from ..inputs.names import Patterns
from .collectives import line_of, use_of
from .elsewhere import along, because
from .lookups import is_own, lines
from .state import State
from .work import in_blocks, work

MOST = 3
"""The most ops named at which a propagated claim loses."""


def explain(plan: State, values: Patterns) -> str:
    """A paragraph for each value that the patterns match."""
    found = plan.source.addresses.find(values)
    moves: dict[int, list[Move]] = {}
    for move in plan.decisions.moves:
        moves.setdefault(move.value, []).append(move)
    carried = {axis: _lost_ahead(plan, axis, moves) for axis in plan.table.axes}
    return "\n\n".join(
        "\n".join(
            [*_placed(plan, name, value, carried), *(line for move in moves.get(value, ()) for line in _moved(plan, move))]
        )
        for name, value in found.items()
    )


def _placed(plan: State, name: str, value: int, carried: dict[str, dict[int, list[Move]]]) -> Iterator[str]:
    """A value's layout, the tactic that placed each axis, and the later ops where that tactic loses."""
    program, placements = plan.source.program, plan.decisions.placements
    yield f"{name}: {plan.layout_text(value, placements.home(value), placements.sources.get(value, ()))}"
    for axis, table in plan.table.axes.items():
        claim = plan.table.claim(value, axis)
        if claim is None:
            continue
        what = "replicated along" if claim.at == WHOLE else f"dim {claim.at} on"
        how = "said" if table.values[value] is not None and value not in program.arguments else "decided"
        yield f"  {what} `{axis}`: {how} by {plan.cited(claim.tactic)}"
        for move in carried[axis].get(value, ()):
            if move.value != value:
                yield f"    further on, for `{plan.source.addresses.names[move.value]}`: {_lost(plan, move, axis)}"
    yield from _rim(plan, value)
    for text, node in (*along(plan, value), *lines(plan, value)):
        place = line_of(plan, value, node)
        yield f"  {text.format(f' at {place}' if place else '')}"


def _rim(plan: State, value: int) -> Iterator[str]:
    """What it costs to compute a value in windows that overlap, rim and all, together with what it is computed from."""
    program, found, ahead = plan.source.program, dict[int, Node](), [value]
    while ahead:
        number = program.producer[ahead.pop()]
        placed = plan.decisions.placements.nodes[number].placement if number >= 0 else ()
        if number not in found and any(factor.has_halo for _, factor in placed):
            found[number] = program.nodes[number]
            ahead += found[number].operands
    windows, blocks = work(plan, found.values()), work(plan, found.values(), in_blocks)
    if windows != blocks:
        yield f"  computed in windows that overlap, with what it is computed from: {windows} on a device instead of {blocks}"


def _moved(plan: State, move: Move) -> Iterator[str]:
    """One move, and the earlier tactic that gave its use another layout."""
    node = use_of(plan, move)
    target = plan.layout_text(move.value, move.target)
    use = "the result" if node is None else f"`{node.kind}`"
    place = line_of(plan, move.value, node)
    reasons = dict.fromkeys(each for step in move.path.steps if (each := because(plan, move, step)))
    said = f" ({'; '.join(reasons)})" if reasons else ""
    yield f"  for {use}{f' at {place}' if place else ''}: {target} by {move.path}{said}"
    for axis in plan.table.axes:
        if said := _lost(plan, move, axis):
            yield f"    {said}"


def _lost(plan: State, move: Move, axis: str) -> str:
    """How the tactic of the value loses at the use, if an earlier tactic made the claim of the use; otherwise empty."""
    node = use_of(plan, move)
    if node is None or not move.uses or is_own(move):
        return ""
    claim, own = plan.decisions.placements.claim(node.number, axis), plan.table.claim(move.value, axis)
    if claim is None or own is None or own.at == WHOLE or claim.tactic >= own.tactic:
        return ""
    first, later = (plan.cited(each.tactic) for each in (claim, own))
    return f"`{node.kind}` already uses `{axis}` by {first}, which was earlier; {later} loses there"


def _lost_ahead(plan: State, axis: str, moves: dict[int, list[Move]]) -> dict[int, list[Move]]:
    """Value -> the first moves at which its claim, propagated by the same tactic, loses: one sweep backwards."""
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
                here += [move for move in behind if move not in here][: MOST - len(here)]
    return lost
