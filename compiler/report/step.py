"""A plan after some of its tactics: its totals, and every view of it that a page draws."""

from ..graph.graph import lower
from ..plan.collectives import bytes_by_axes, bytes_per_device, counts
from ..plan.counts import Counts
from ..plan.silent import silent
from ..plan.state import State
from ..plan.summary import TRIED
from ..plan.work import flops_per_device
from .kernels import kernels_json
from .open_ends import open_json
from .pool import Json, Pools
from .sent import sent_json
from .stored import memory_json


def step_json(plan: State, own: int, last: bool, pools: Pools) -> Json:
    """One step. The first `own` actions are the program's own; the graph of a large program is that of the last step only."""
    number, excess, flops = len(plan.actions) - own, silent(plan), flops_per_device(plan)
    graph = lower(plan, "collective") if last or len(plan.source.program.nodes) <= TRIED else None
    return {
        "tactic": plan.actions[-1].text if number else "",
        "number": len(plan.actions),
        "mesh": [list(pair) for pair in plan.mesh.axes.items()],
        "counts": _counts(counts(plan)),
        "bytes": bytes_per_device(plan),
        "by_axes": [[list(axes), size] for axes, size in bytes_by_axes(plan).items() if size],
        "flops": flops.known,
        "unknown": list(flops.unknown),
        "excess": excess.flops,
        "memory": memory_json(plan, pools),
        "sent": sent_json(plan, pools),
        "open": open_json(plan, excess, pools),
        "graph": None if graph is None else kernels_json(graph, pools),
    }


def _counts(found: Counts) -> Json:
    return {"always": dict(found), "in_branches": found.in_branches, "own": dict(found.own), "text": found.text()}
