"""The changes of a step, in at most six lines. Only what is known without delay: on 96 layers, memory would take a second.

layouts: params/blocks/*/w1 x 12: f32[64, 256] --> f32[64, model*128]
  params/blocks/*/w2 x 12: f32[256, 64] --> f32[model*128, 64]; and 2 more
collectives: + 12 all_reduce
a device receives 1.5 MiB in a call, before 0 bytes; it holds 3.0 MiB of arguments, before 6.0 MiB
"""

from collections.abc import Iterator, Mapping

from ...dialects.ground.amounts import counted, of_bytes
from ...rewrites.decide.device_sets import coordinates
from ..advice.conflicts import conflict
from ..advice.open_conflicts import open_keys
from ..cost.alike_ends import argument_bytes
from ..cost.collectives import bytes_per_device, counts
from ..cost.device_sets import crossing_bytes, transfers
from ..cost.flops import flops_per_device
from ..plan.layouts import layouts
from ..plan.state import State
from ..views.listing import merged

MOST_LAYOUTS = 2
"""The most layouts that a summary of changes shows."""


def changes(before: State, after: State, most: int = MOST_LAYOUTS) -> list[str]:
    """The lines that describe a step's changes; "nothing has changed" if there are none."""
    lines = [
        *_layouts(layouts(before), layouts(after), most),
        *_collectives(counts(before), counts(after)),
        *_bytes(before, after),
        *_device_sets(before, after),
        *_flops(before, after),
        *_conflicts(before, after),
        *_stops(before, after),
    ]
    return lines or ["nothing has changed"]


def _layouts(before: Mapping[str, str], after: Mapping[str, str], most: int) -> Iterator[str]:
    changed = {name: f"{before[name]} --> {layout}" for name, layout in after.items() if before.get(name, layout) != layout}
    rows = [f"{name}: {change}" for name, change in merged(changed.items())]
    if rows:
        more = f"; and {len(rows) - most} more" if len(rows) > most else ""
        yield "layouts: " + "\n  ".join(rows[:most]) + more


def _collectives(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[str]:
    less = [f"- {before[kind] - times} {kind}" for kind, times in after.items() if times < before[kind]]
    more = [f"+ {times - before[kind]} {kind}" for kind, times in after.items() if times > before[kind]]
    if less or more:
        yield f"collectives: {', '.join([*more, *less])}"


def _bytes(before: State, after: State) -> Iterator[str]:
    pairs = [(of_bytes(of(before)), of_bytes(of(after))) for of in (bytes_per_device, argument_bytes)]
    if any(old != new for old, new in pairs):
        (sent, sends), (held, holds) = pairs
        received = f"receives {sends} in a call" + (f", before {sent}" if sent != sends else "")
        yield f"a device {received}; it holds {holds} of arguments" + (f", before {held}" if held != holds else "")


def _device_sets(before: State, after: State) -> Iterator[str]:
    """The device sets that the plan has now, and what crosses between them."""
    if after.table.sets is None or after.table.sets is before.table.sets:
        return
    crossing = transfers(after)
    size = of_bytes(crossing_bytes(after))
    more = f"; {counted(len(crossing), 'value')} cross between them, {size}" if crossing else ""
    yield f"runs on {' and '.join(map(coordinates, after.table.sets.every))}{more}"


def _flops(before: State, after: State) -> Iterator[str]:
    """The change in flops, only if a law has rewritten the program: placements change flops too, and `diff` shows these."""
    if before.source is not after.source:
        computes, computed = flops_per_device(after), flops_per_device(before)
        yield f"a device computes {computes} in a call, before {computed}"


def _conflicts(before: State, after: State) -> Iterator[str]:
    was, now = set(open_keys(before)), open_keys(after)
    new = [key for key in now if key not in was]
    if new:
        more = f", and {len(new) - 1} more" if len(new) > 1 else ""
        yield f"{conflict(after, new[0])!r}{more}: `conflicts {now[new[0]] + 1}` shows ways out"
    elif solved := len(was) - len(was.intersection(now)):
        yield f"{counted(solved, 'conflict')} resolved, {len(now)} open" if now or solved > 1 else "the conflict is resolved"


def _stops(before: State, after: State) -> Iterator[str]:
    if (new := len(after.table.blocked) - len(before.table.blocked)) > 0:
        yield f"propagation stopped at {new} {'ops' if new > 1 else 'op'}: `blocked` says why"
