"""What changed from one plan to another of the same program: layouts, collectives, bytes, memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from ...dialects.errors import Error
from ...rewrites.decide.op_layouts import boundary
from ..inputs.checks import shown
from .collectives import bytes_per_device, counts
from .counts import Counts
from .queries import layouts
from .state import State

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences, as pairs (before, after). `bytes` are received by a device in a call; `memory` is that of its arguments.

    `inside` has the collectives in branches and in loops of unknown trip count: `{"all_reduce in cond#0:1": (0, 1)}`.
    """

    layouts: dict[str, tuple[str, str]]
    counts: dict[str, tuple[int, int]]
    inside: dict[str, tuple[int, int]]
    bytes: tuple[int, int]
    memory: tuple[int, int]

    def __repr__(self) -> str:
        lines = [f"{name}: {old} --> {new}" for name, (old, new) in self.layouts.items()]
        lines += [f"{kind}: {old} --> {new}" for kind, (old, new) in (*self.counts.items(), *self.inside.items())]
        lines.append(f"bytes received by a device: {self.bytes[0]:,} --> {self.bytes[1]:,}")
        lines.append(f"bytes of arguments on a device: {self.memory[0]:,} --> {self.memory[1]:,}")
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
