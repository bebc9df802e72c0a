"""What changed from one plan to another of the same program: layouts, collectives, bytes, flops, memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from ...dialects.errors import Error
from ...rewrites.decide.op_layouts import boundary
from ..inputs.checks import shown
from .collectives import bytes_per_device, counts
from .counts import Counts
from .memory import peak_bytes
from .queries import layouts
from .state import State
from .work import Flops, flops_per_device

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences, as pairs (before, after).

    A device receives `bytes` and computes `flops` in a call. `memory` is the most bytes that it stores at one time, and
    `arguments` are those of its arguments.

    `inside` has the collectives in branches and in loops of unknown trip count: `{"all_reduce in cond#0:1": (0, 1)}`.
    """

    layouts: dict[str, tuple[str, str]]
    counts: dict[str, tuple[int, int]]
    inside: dict[str, tuple[int, int]]
    bytes: tuple[int, int]
    flops: tuple[Flops, Flops]
    memory: tuple[int, int]
    arguments: tuple[int, int]

    def __repr__(self) -> str:
        lines = [f"{name}: {old} --> {new}" for name, (old, new) in self.layouts.items()]
        lines += [f"{kind}: {old} --> {new}" for kind, (old, new) in (*self.counts.items(), *self.inside.items())]
        lines.append(f"bytes received by a device: {self.bytes[0]:,} --> {self.bytes[1]:,}")
        lines.append(f"flops of a device: {' --> '.join(each.text(unit='') for each in self.flops)}")
        lines.append(f"bytes on a device at the peak: {self.memory[0]:,} --> {self.memory[1]:,}")
        lines.append(f"bytes of arguments on a device: {self.arguments[0]:,} --> {self.arguments[1]:,}")
        return "\n".join(lines)


def diff(before: object, after: State) -> Diff:
    """Raises Error for plans of different traces, and for a value that is not a plan."""
    if not isinstance(before, State):
        raise Error(f"`diff` takes a plan, got {shown(before)}", helps=["write after.diff(before)"])
    if before.source is not after.source:
        raise Error("these plans come from different traces", helps=["derive both from one `pt.plan(...)`"])
    old, new = counts(before), counts(after)
    received = bytes_per_device(before), bytes_per_device(after)
    return Diff(
        _changed(layouts(before), layouts(after)),
        _changed(old, new),
        _changed(_inside(old), _inside(new), 0),
        received,
        (flops_per_device(before), flops_per_device(after)),
        (peak_bytes(before), peak_bytes(after)),
        (argument_bytes(before), argument_bytes(after)),
    )


def _inside(counts: Counts) -> dict[str, int]:
    return {
        f"{kind} in {where}": times
        for where, row in (*counts.branches.items(), *counts.unknown.items())
        for kind, times in row.items()
    }


def _changed(
    before: Mapping[str, Value], after: Mapping[str, Value], missing: Value | None = None
) -> dict[str, tuple[Value, Value]]:
    """The entries that differ; a name that only one has is `missing` in the other."""
    pairs = {name: (before.get(name, missing), after.get(name, missing)) for name in (*before, *after)}
    return {name: cast("tuple[Value, Value]", pair) for name, pair in pairs.items() if pair[0] != pair[1]}


def argument_bytes(plan: State) -> int:
    """Bytes of arguments that one device holds."""
    program, placements = plan.source.program, plan.decisions.placements
    return sum(placements.local_bytes(value, boundary(placements, value)) for value in program.arguments)
