"""Conflicts resolved by the fastest way out of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...plan.open_conflicts import open_keys
from ...plan.prefixes import redone
from ...plan.ways_out import Resolution, tried
from ..plan import Plan
from .base import Tactic


@dataclass(frozen=True, repr=False)
class Resolve(Tactic):
    """Resolve each open conflict by the way out that takes a device the least time, by its bytes and flops.

    Each way is a tactic of its own in the trace, so a replayed plan does not choose again.

        a + a.T, `a` tiled on rows   -->   tile('add#0', 0, 'data'): an all_to_all of a.T; each device adds its rows
    """

    def __call__(self, plan: Plan) -> Plan:
        done, count = set[object](), 1
        while left := [key for key in open_keys(plan) if key not in done]:
            chosen, touched = list[Resolution](), set[int]()
            found = tried(plan, left[:count])
            for key, ways in found.items():
                # What an earlier one changes may change the ways out of this one: they are tried again, on the next plan.
                if touched.isdisjoint(ways.touched):
                    done.add(key)
                    chosen += ways.found[:1]
                touched |= ways.touched
            count = 2 * count if 2 * len(done & found.keys()) >= len(found) else 1
            plan = _resolved(plan, chosen)
        return plan


def _resolved(plan: Plan, chosen: Sequence[Resolution]) -> Plan:
    """The plan with these ways out, in the order in which they would come one after another."""
    first = [way.step for way in reversed(chosen) if way.first]
    if first:
        plan = plan.apply(lambda plan: redone(plan, plan.own, first, keeps=True))
    return plan.apply(*(way for way in chosen if not way.first))
