"""All data of a page: the program once (or more often, if laws rewrite it), and a step for each of the plan's tactics.

A step is the plan after some of its tactics: its totals, and every view of it that a page draws.

Texts, source lines and layouts are written once. A step has the layouts that differ from those of the step before.
"""

from collections.abc import Sequence

from ..advice.redundancy import redundant_flops
from ..answers.summary import TRIED
from ..cost.collectives import bytes_by_axes, bytes_per_device, counts
from ..cost.flops import flops_per_device
from ..graph.dataflow import kernels_json
from ..graph.graph import lower
from ..page.string_table import Json, Pool, Pools
from ..plan.history import prefixes
from ..plan.state import State
from .collective_rows import sent_json
from .layout_drawings import Kept, changed_layouts, layout_numbers, layouts_pool
from .loop_rows import loops_json
from .memory_timeline import memory_json
from .problems import open_json
from .program import Shown, program_rows


def data(plan: State) -> Json:
    """The data of a plan, and of the plans after each of its earlier tactics."""
    pools, layouts, steps = Pools(), layouts_pool(), prefixes(plan)
    programs, numbers = _programs(steps, pools)
    own = len(steps[0].actions)
    found = [_step(step, own, step is plan, programs[number].kinds, pools) for step, number in zip(steps, numbers, strict=True)]
    placed = _layouts(steps, numbers, layouts)
    return {
        "name": plan.source.traced.name,
        "mesh": [list(pair) for pair in plan.mesh.whole().axes.items()],
        "whole": len(steps) == len(plan.actions) - own + 1,
        "programs": [each.json for each in programs],
        "steps": [
            {**step, "program": number, "layouts": each} for step, number, each in zip(found, numbers, placed, strict=True)
        ],
        "layouts": layouts.items,
        "texts": pools.texts.items,
        "lines": pools.lines.items,
    }


def _programs(steps: Sequence[State], pools: Pools) -> tuple[list[Shown], list[int]]:
    """The different programs, and for each step the number of its program. There is one program, unless a law rewrites it."""
    found: list[Shown] = []
    numbers: list[int] = []
    for before, step in zip([None, *steps], steps, strict=False):
        if before is None or before.source is not step.source:
            program = program_rows(step, pools)
            found += [program] if program not in found else []
            numbers.append(found.index(program))
        else:
            numbers.append(numbers[-1])
    return found, numbers


def _layouts(steps: Sequence[State], programs: Sequence[int], pool: Pool[Kept]) -> list[Json]:
    found: list[Json] = []
    before: list[int] = []
    for number, step in enumerate(steps):
        after = layout_numbers(step, pool)
        same = number > 0 and programs[number] == programs[number - 1]
        found.append(changed_layouts(before if same else [-1] * len(after), after))
        before = after
    return found


def _step(plan: State, own: int, last: bool, kinds: Sequence[int], pools: Pools) -> Json:
    """The data of one step. `own` is the number of the program's own actions.

    A large program's graph is in the last step only.
    """
    number, flops = len(plan.actions) - own, flops_per_device(plan)
    sent = counts(plan)
    graph = lower(plan, "collective") if last or len(plan.source.program.nodes) <= TRIED else None
    return {
        "tactic": plan.actions[-1].text if number else "",
        "number": len(plan.actions),
        "mesh": [list(pair) for pair in plan.decided.mesh.axes.items()],
        "counts": {"always": dict(sent), "in_branches": sent.in_branches, "own": dict(sent.own), "text": sent.text()},
        "bytes": bytes_per_device(plan),
        "by_axes": [[list(axes), size] for axes, size in bytes_by_axes(plan).items() if size],
        "flops": flops.known,
        "unknown": list(flops.unknown),
        "excess": redundant_flops(plan),
        "memory": memory_json(plan, kinds, pools),
        "loops": loops_json(plan, pools),
        "sent": sent_json(plan, pools),
        "open": open_json(plan, kinds, pools),
        "graph": None if graph is None else kernels_json(graph, graph.nodes, pools),
    }
