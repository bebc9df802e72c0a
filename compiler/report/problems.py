"""What a plan leaves open or does redundantly: conflicts, stops, unpartitioned ops, and excess."""

from collections.abc import Sequence

from ..advice.conflicts import conflict
from ..advice.open_conflicts import open_keys
from ..advice.redundancy import Row, silent_rows
from ..advice.stops import TRIED, Stop, not_tried, stops, wholes
from ..page.string_table import Json, Pools
from ..plan.annotation_outcomes import unapplied
from ..plan.state import State
from ..views.grouping import alike
from ..views.listing import starred
from .program import OpNumbers

MOST_TRIED = 8
"""Per step, the most conflicts, and the most rows of stops, whose ways out are tried."""
MOST_OPS = 500
"""Per step, the most ops times conflicts of device sets whose ways out are tried: each takes plans of its own."""
MOST_ROWS = 200
"""The most rows of one kind, counted after merging those that are alike."""


def open_json(plan: State, kinds: Sequence[int], pools: Pools) -> Json:
    """`kinds` are those of the arguments, results and ops: what is alike and of one kind is one row."""
    return {
        "conflicts": _conflicts(plan, pools),
        "stops": [
            _stop(some, pools, is_tried=number < MOST_TRIED)
            for number, some in enumerate(
                alike(stops(plan), lambda each: (each.op, each.axis, each.dim, each.reason, pools.line(each.source)))[
                    :MOST_ROWS
                ]
            )
        ],
        "excess": [_silent(each, pools) for each in silent_rows(plan, kinds, MOST_ROWS)],
        "wholes": [
            {"op": pools.text(each.primitive), "text": pools.text(repr(each)), "line": pools.line(each.source)}
            for each in wholes(plan)
        ],
        "annotations": pools.text(unapplied(plan) or ""),
    }


def _conflicts(plan: State, pools: Pools) -> list[Json]:
    """The open conflicts. The ways out of the first ones are tried, unless the program is so large that this takes long."""
    found: list[Json] = []
    count = len(plan.source.program.nodes)
    tried = MOST_TRIED if count <= TRIED else 0
    if plan.table.sets is not None:
        tried = min(tried, MOST_OPS // max(count, 1))
    for number, key in enumerate(open_keys(plan)):
        each, node = conflict(plan, key), key[0]
        found.append(
            {
                "op": pools.text(each.op),
                "axis": each.axis,
                "line": pools.line(each.source),
                "at": OpNumbers(plan).op(node) if node >= 0 else -1,
                "claims": [[pools.text(text), tactic] for text, tactic in zip(each.claims, each.tactics, strict=True)],
                "ways": [
                    {
                        "tactic": pools.text(way.tactic),
                        "first": way.first,
                        "bytes": way.bytes,
                        "flops": way.flops,
                        "memory": way.memory,
                    }
                    for way in each.resolutions
                ]
                if number < tried
                else None,
            }
        )
    return found


def _stop(some: list[Stop], pools: Pools, is_tried: bool) -> Json:
    """A row of stops that are alike. Its cure is given if cures are tried."""
    first = some[0]
    value = starred(first.value) if len(some) > 1 else first.value
    return {
        "op": pools.text(first.op),
        "axis": first.axis,
        "value": pools.text(f"dim {first.dim} of {value} ({first.extent:,})"),
        "reason": pools.text(first.reason),
        "cure": pools.text("\n".join(first.helps) or "no single tactic cures it" if is_tried else first.advice or not_tried()),
        "line": pools.line(first.source),
        "bytes": sum(each.bytes for each in some),
        "flops": sum(each.flops.known for each in some),
        "count": len(some),
    }


def _silent(row: Row, pools: Pools) -> Json:
    first = row.first
    return {
        "what": first.what,
        "value": pools.text(starred(first.value) if row.times > 1 else first.value),
        "op": pools.text(first.op),
        "axes": list(first.axes),
        "line": pools.line(first.source),
        "bytes": row.bytes,
        "flops": row.flops,
        "count": row.times,
    }
