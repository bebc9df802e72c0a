"""What a plan does on several devices at once, although one would do: what is replicated, computed by all, or not partitioned.

Nothing of it is wrong, and much of it is small. But none of it shows as a collective.

    params/norm (f32[64])                  stored in full by each device along `data` and `model`
    dot_general#7 (logits) at lm.py:40     computed in full by both devices along `model`
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from ...dialects.ground.english import of_bytes, of_flops
from ...dialects.ranges.algebra import MeshAxis
from ...rewrites.decide.placements import boundary
from ...rewrites.program.program import Program
from ..cost.counts import most
from ..cost.flops import flops_per_device, in_blocks, of_alike_ops, op_name
from ..inputs.lines import Source, at_line, place_of
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.grouped import alike
from ..views.listing import Listing, Shape
from ..views.view import Cell
from .stops import main_value, whole_ops

REPLICATED, REDUNDANT, UNPARTITIONED = "replicated", "computed by all", "unpartitioned"
UNKNOWN = "computed by all, flops unknown"


class Silent(NamedTuple):
    """One array or op of which devices along `axes` all have, or do, the same.

    `bytes` is what a device stores beyond its equal share; of an unpartitioned op, what it receives for it. `flops` is what it
    computes in excess in a call, the rims of windows that overlap included.
    """

    what: str
    """`replicated`, `computed by all`, `computed by all, flops unknown` or `unpartitioned`."""
    value: str
    op: str
    axes: tuple[str, ...]
    bytes: int
    flops: int
    source: Source | None

    def __str__(self) -> str:
        of = f" by `{self.op}`" if self.op else ""
        cost = " and ".join(text(each) for each, text in ((self.bytes, of_bytes), (self.flops, of_flops)) if each)
        along = f" along {', '.join(self.axes)}" if self.axes else ""
        return f"`{self.value}`{of}{at_line(self.source)}: {self.what}{along}" + (
            f", {cost} in excess on a device" if cost else ""
        )

    __repr__ = __str__


class InExcess(Listing[Silent]):
    """The answer of `plan.silent`. Of the `total` flops of a device in a call, `flops` are redundant."""

    def __init__(self, items: Iterable[Silent] = (), flops: int = 0, total: int = 0) -> None:
        self.flops, self.total = flops, total
        super().__init__(
            items,
            Shape("replicated values or redundant ops", _COLUMNS, _row, partial(_notes, self.share, total), spare=("op", "at")),
        )

    @property
    def share(self) -> str:
        """The flops in excess as a part of all: `1.3%`; empty if there are none."""
        return f"{self.flops / self.total:.1%}" if self.flops and self.total else ""


def silent(plan: State) -> InExcess:
    """All of it: what is most of a device's arguments and results, or of its flops, comes first."""
    rows = (each for each, _ in silent_alike(plan, int))
    return InExcess(rows, redundant_flops(plan), flops_per_device(plan).known)


def silent_alike(plan: State, common: Callable[[int], Hashable]) -> Iterator[tuple[Silent, int]]:
    """The same, of those that are alike the first, and how many they are.

    They cost the same, and `common` is equal for their numbers: arguments and results are counted first, as `ends` has them,
    and then the ops.
    """
    program, placements = plan.source.program, plan.decisions.placements
    stored = max(sum(map(placements.bytes_outside, (*program.arguments, *program.returned))), 1)
    total = max(flops_per_device(plan).known, 1)
    found = [
        (each, numbers)
        for each in (*_replicated(plan), *plan.once(_redundant), *_unpartitioned(plan))
        for numbers in alike(each.numbers, common)
    ]
    found.sort(
        key=lambda some: (-max(some[0].bytes / stored, some[0].flops / total), some[0].what == UNPARTITIONED, some[1][0])
    )
    outer = ends(program)
    return ((_said(plan, each, numbers[0], outer), len(numbers)) for each, numbers in found)


def redundant_flops(plan: State) -> int:
    """The flops of a device in a call beyond its share of them; of branches, those of the branch with the most."""
    where = plan.source.program.where
    return int(most((each.flops * len(each.numbers), where(each.region)) for each in plan.once(_redundant)))


def ends(program: Program) -> list[int]:
    """The arguments and the results, each once."""
    return [*dict.fromkeys((*program.arguments, *program.returned))]


_COLUMNS = ("value", "op", "what", "along", "bytes", "flops", "at")


def _row(each: Silent) -> Sequence[Cell]:
    return each.value, each.op, each.what, ", ".join(each.axes), each.bytes, each.flops, place_of(each.source)


def _notes(share: str, total: int, found: Sequence[Silent]) -> list[str]:
    stored = sum(each.bytes for each in found if each.what == REPLICATED)
    said = [f"{stored:,} bytes of a device are stored by others too"] if stored else []
    said += [f"{share} of its {total:,} flops are redundant"] if share else []
    return ["; ".join(said)] if said else []


def _whole_on(plan: State, placed: Iterable[MeshAxis]) -> tuple[MeshAxis, ...]:
    """The axes of more than one device that are not among these."""
    return tuple(axis for axis in plan.mesh.places if axis.size > 1 and axis not in placed)


def _excess(size: int, axes: Sequence[MeshAxis]) -> int:
    """What is more than a device's share, if all devices of these axes have so much."""
    return size - -(-size // prod(axis.size for axis in axes))


class _Alike(NamedTuple):
    """Arguments and results, or ops, by number, that are redundant in the same way, and what each of them costs."""

    what: str
    axes: tuple[MeshAxis, ...]
    bytes: int
    flops: int
    numbers: Sequence[int]
    region: int = 0


def _said(plan: State, each: _Alike, number: int, outer: Sequence[int]) -> Silent:
    """What is said of one of them."""
    names, axes = plan.source.addresses.names, tuple(map(str, each.axes))
    if number < len(outer):
        return Silent(each.what, names[outer[number]], "", axes, each.bytes, 0, None)
    node = plan.source.program.nodes[number - len(outer)]
    value = main_value(node)
    return Silent(each.what, names.get(value, ""), op_name(node), axes, each.bytes, each.flops, line_of(plan, value, node))


def _replicated(plan: State) -> Iterator[_Alike]:
    """Arguments and results; a scalar cannot be shared."""
    program, placements = plan.source.program, plan.decisions.placements
    outer = ends(program)
    layouts = [boundary(placements, value) for value in outer]
    # Thousands of values have a few hundred layouts.
    for numbers in alike(range(len(outer)), lambda number: (layouts[number], program.types[outer[number]].dtype)):
        value, layout = outer[numbers[0]], layouts[numbers[0]]
        axes = _whole_on(plan, layout.axes)
        if (excess := _excess(placements.local_bytes(value, layout), axes)) and program.shape(value):
            yield _Alike(REPLICATED, axes, excess, 0, numbers)


def _redundant(plan: State) -> Sequence[_Alike]:
    """The ops that all devices of some axes run in full, or with overlapping windows, and the flops of that in a call."""
    return [*_each_redundant(plan)]


def _each_redundant(plan: State) -> Iterator[_Alike]:
    program, placements = plan.source.program, plan.decisions.placements
    first = len(ends(program))
    for some, flops in plan.once(of_alike_ops):
        node = some[0]
        if flops == 0 or node.kind == "whole" or not node.results:
            continue
        axes, numbers = _whole_on(plan, placements.axes(node)), [first + each.number for each in some]
        if flops is None:
            if axes:
                yield _Alike(UNKNOWN, axes, 0, 0, numbers, node.region)
            continue
        overlaps = any(factor.has_halo for _, factor in placements.nodes[node.number].placement)
        rim = flops - (in_blocks(plan, node) or flops) if overlaps else 0
        if excess := (_excess(flops - rim, axes) + rim) * program.trips(node.region):
            yield _Alike(REDUNDANT, axes, 0, excess, numbers, node.region)


def _unpartitioned(plan: State) -> Iterator[_Alike]:
    axes, first = _whole_on(plan, ()), len(ends(plan.source.program))
    return (_Alike(UNPARTITIONED, axes, each.bytes, 0, [first + node.number]) for node, each in whole_ops(plan) if not each.own)
