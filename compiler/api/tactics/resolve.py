"""Conflicts resolved by the fastest way out of each."""

from __future__ import annotations

from dataclasses import dataclass

from ...plan.conflicts import conflict, open_keys
from ..plan import Plan
from .base import Tactic


@dataclass(frozen=True, repr=False)
class Resolve(Tactic):
    """Resolve each open conflict by the way out that takes a device the least time, by its bytes and flops.

    Each way is a tactic of its own in the trace, so a replayed plan does not choose again.

        a + a.T, `a` tiled on rows   -->   tile('add#0', 0, 'data'): an all_to_all of a.T; each device adds its rows
    """

    def __call__(self, plan: Plan) -> Plan:
        tried = set[object]()
        while left := [key for key in open_keys(plan) if key not in tried]:
            tried.add(left[0])
            if ways := conflict(plan, left[0]).resolutions:
                plan = plan.apply(ways[0])
        return plan
