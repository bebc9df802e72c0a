"""What changed from one plan to another of the same program: layouts, collectives, bytes, flops, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar, cast

from ...dialects.ground.errors import Error
from ..advice.redundancy import redundant_flops
from ..cost.alike_ends import argument_bytes
from ..cost.collectives import bytes_per_device, counts
from ..cost.counts import Counts
from ..cost.device_sets import crossing_bytes
from ..cost.flops import Flops, flops_per_device
from ..cost.memory import peak_bytes
from ..inputs.message_language import all_of, cited
from ..plan.layouts import layouts
from ..plan.state import State
from ..views.listing import MOST_ROWS, merged
from ..views.view import Part, View

Value = TypeVar("Value")


@dataclass(frozen=True, repr=False)
class Diff(View):
    """The differences, as pairs (before, after).

    A device receives `bytes` and computes `flops` in a call; `excess` are those that are redundant: others compute them too.
    `memory` is the most bytes that it stores at one time, `arguments` those of its arguments, and `padding` what pads them.

    `inside` has the collectives in branches and in loops of unknown trip count: `{"all_reduce in cond#0:1": (0, 1)}`.
    """

    layouts: dict[str, tuple[str, str]]
    counts: dict[str, tuple[int, int]]
    inside: dict[str, tuple[int, int]]
    bytes: tuple[int, int]
    flops: tuple[Flops, Flops]
    excess: tuple[int, int]
    padding: tuple[int, int]
    memory: tuple[int, int]
    arguments: tuple[int, int]
    crossing: tuple[int, int]
    """The bytes that devices receive from other device sets in a call, one device of each set together."""
    idle: tuple[str, ...] = ()
    """The tactics of the later plan that change nothing, with number and text."""
    whole: bool = field(default=False, compare=False)
    """Whether the text lists all layouts."""

    def all(self) -> Diff:
        """Returns the same difference, whose text lists all layouts."""
        return replace(self, whole=True).on(self.axes)

    def parts(self) -> Sequence[Part]:
        rows = merged((name, f"{old} --> {new}") for name, (old, new) in self.layouts.items())
        most = len(rows) if self.whole else MOST_ROWS
        lines = [f"{name}: {change}" for name, change in rows[:most]]
        lines += [f"and {more:,} more layouts: see {all_of('`.layouts`')}"] if (more := len(rows) - most) > 0 else []
        lines += [f"{kind}: {old} --> {new}" for kind, (old, new) in (*self.counts.items(), *self.inside.items())]
        lines.append(f"bytes received by a device: {_change(self.bytes)}")
        lines.append(f"flops of a device: {' --> '.join(each.text(number='{:,}'.format) for each in self.flops)}")
        lines += [f"redundant flops of a device: {_change(self.excess)}"] if any(self.excess) else []
        lines += [f"bytes that pad the blocks of arguments inside: {_change(self.padding)}"] if any(self.padding) else []
        lines.append(f"bytes on a device at the peak: {_change(self.memory)}")
        lines.append(f"bytes of arguments on a device: {_change(self.arguments)}")
        lines += [f"bytes that cross device sets: {_change(self.crossing)}"] if any(self.crossing) else []
        return [*lines, *(f"tactic {each}, changes nothing" for each in self.idle)]


def _change(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} --> {pair[1]:,}"


def diff(before: State, after: State) -> Diff:
    """What changed between two plans. Raises Error for plans of different traces."""
    if before.source.root is not after.source.root:
        raise Error("these plans come from different traces", helps=["derive both from one `pt.plan(...)`"])
    old, new = counts(before), counts(after)
    received = bytes_per_device(before), bytes_per_device(after)
    return Diff(
        _changed(layouts(before), layouts(after)),
        _changed(old, new),
        _changed(_inside(old), _inside(new), 0),
        received,
        (flops_per_device(before), flops_per_device(after)),
        (redundant_flops(before), redundant_flops(after)),
        (padding_bytes(before), padding_bytes(after)),
        (peak_bytes(before), peak_bytes(after)),
        (argument_bytes(before), argument_bytes(after)),
        (crossing_bytes(before), crossing_bytes(after)),
        tuple(f"{number}, {cited(action.text)}" for number, action in enumerate(after.actions, 1) if action.idle),
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
    """The entries that differ, as pairs. A name that only one side has is `missing` on the other."""
    pairs = {name: (before.get(name, missing), after.get(name, missing)) for name in (*before, *after)}
    return {name: cast("tuple[Value, Value]", pair) for name, pair in pairs.items() if pair[0] != pair[1]}


def padding_bytes(plan: State) -> int:
    """The bytes by which the padded arguments of one device exceed its even share of them."""
    program, placements, excess = plan.source.program, plan.decisions.placements, 0
    for value in program.arguments:
        home = placements.homes[value]
        parts = prod(factor.size for _, factor in home.factors)
        whole = program.types[value].nbytes
        excess += placements.local_bytes(value, home) - -(-whole // parts)
    return excess
