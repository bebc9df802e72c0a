"""The collectives of a plan as rows, each with its reasons. Those of layers that are alike share a row, as its members.

all_gather of params/blocks/0/w1, ..., of params/blocks/31/w1   -->   all_gather of params/blocks/*/w1, 32 members
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...rewrites.decide.decide import SELECTED
from ...rewrites.program.program import NodeId, ValueId
from ..answers.explain import explain
from ..cost.collectives import Collective, of_move, of_relaid
from ..cost.device_sets import relaid
from ..inputs.lines import place_of
from ..page.string_table import Json, Pools
from ..plan.state import State
from ..views.grouping import alike
from ..views.listing import starred
from .program import OpNumbers


class Sent(NamedTuple):
    """A collective, with the value that it sends, and the ops that read it, each with the position of the operand."""

    collective: Collective
    value: ValueId
    uses: Sequence[tuple[NodeId, int]]


def sent_json(plan: State, pools: Pools) -> list[Json]:
    """The rows of the table, in the order in which their first members run."""
    numbers = OpNumbers(plan)
    sent = [Sent(each, move.value, move.uses) for at, move in enumerate(plan.decisions.moves) for each in of_move(plan, at)]
    sent += [Sent(each, of.value, [(of.node.number, 0)]) for of in relaid(plan) for each in of_relaid(plan, of)]
    return [_row(plan, members, numbers, pools) for members in alike(sent, _common)]


def _common(sent: Sent) -> object:
    """The key by which collectives share a row: everything but the number of a layer and the bytes."""
    each = sent.collective
    name, line, tactics = starred(each.value), (each.is_of_maker, place_of(each.source)), each.tactics
    return name, each.kind, each.axes, each.times, each.where, each.direction, each.use, line, tactics, each.why


def _row(plan: State, members: list[Sent], numbers: OpNumbers, pools: Pools) -> Json:
    first, several = members[0].collective, len(members) > 1
    return {
        "value": pools.text(starred(first.value) if several else first.value),
        "kind": first.kind,
        "axes": list(first.axes),
        "times": first.times,
        "where": first.where,
        "direction": first.direction,
        "use": pools.text(first.use),
        "line": pools.line(first.source),
        "made": first.is_of_maker,
        "tactics": list(first.tactics),
        "why": pools.text(first.why),
        "bytes": round(sum(each.times * each.received for each, _, _ in members)),
        "reasons": [[pools.text(why.text), why.depth, list(why.tactics)] for why in explain(plan, first).steps[1:]],
        "members": [_member(each, numbers, pools) for each in members],
    }


def _member(each: Sent, numbers: OpNumbers, pools: Pools) -> list[object]:
    """A member of a row: its name, the op that makes the value, the ops that read the result, and its bytes in a call."""
    ends = [numbers.op(node, 0 if position == SELECTED else position) for node, position in each.uses]
    return [
        pools.text(each.collective.value),
        numbers.makers[each.value],
        list(dict.fromkeys(ends)),
        each.collective.total_bytes,
    ]
