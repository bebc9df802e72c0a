"""`Resolve`: resolves each conflict by its cheapest way out, unless it costs less to leave it open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....rewrites.decide.table import Key
from ...advice.open_conflicts import open_keys
from ...advice.tactic_edits import attempted
from ...advice.ways_out import Resolution, apart, next_count, of_those_alike, to_take, tried_ways_out
from ...cost.costs import price
from ...plan.history import redone
from ..plan import Plan
from .base import Tactic


@dataclass(frozen=True, repr=False)
class Resolve(Tactic):
    """Resolve each open conflict by the way out that takes a device the least time, by its bytes and flops.

    Each way is a tactic of its own in the trace, so a replayed plan does not choose again. If every way takes longer than the
    plan does with the conflict open, the conflict stays open.

        a + a.T, `a` tiled on rows   -->   tile('add#0', 0, 'data'): an all_to_all of a.T; each device adds its rows
    """

    def __call__(self, plan: Plan) -> Plan:
        done, count = set[object](), 1
        while left := [key for key in open_keys(plan) if key not in done]:
            found = tried_ways_out(plan, left[:count])
            # What an earlier one changes may change the ways out of the others: they are tried again, on the next plan.
            now = {key: way for key in apart(found) if (way := to_take(plan, found[key].found)) is not None}
            done.update(apart(found))
            plan = _with_alike(plan, _resolved(plan, [*now.values()]), now)
            count = next_count(plan, count, found)
        return plan


def _resolved(plan: Plan, chosen: Sequence[Resolution]) -> Plan:
    """Applies these ways out, in the order in which they would be chosen one after another."""
    first = [way.step for way in reversed(chosen) if way.first]
    if first:
        plan = plan.apply(lambda plan: redone(plan, plan.own, first, keeps=True))
    return plan.apply(*(way for way in chosen if not way.first))


def _with_alike(plan: Plan, made: Plan, chosen: Mapping[Key, Resolution]) -> Plan:
    """The plan in which ways out are taken of those that are alike too, unless it costs more than without.

    A step of a model has such a conflict for each of its layers, so they are not all tried one by one.
    """
    steps = [step for key, way in chosen.items() for step in of_those_alike(plan, made, key, way)]
    alike = attempted(made, lambda each: each.apply(*steps)) if steps else None
    return made if alike is None or price(alike) > price(made) else alike
