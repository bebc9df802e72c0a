"""Finds what several devices do although one would do: values that are replicated, ops computed by all, unpartitioned ops.

None of this is wrong, and much of it is small, but it does not show as a collective.

    params/norm (f32[64])                  stored in full by each device along `data` and `model`
    dot_general#7 (logits) at lm.py:40     computed in full by both devices along `model`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import nsmallest
from math import prod
from typing import NamedTuple

from ...dialects.ground.amounts import of_bytes, of_flops
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis
from ...rewrites.decide.placements import boundary
from ...rewrites.program.program import Program, ValueId
from ..cost.counts import most
from ..cost.flops import flops_per_device, in_blocks, of_alike_ops, shown_op_name
from ..inputs.lines import SourceLine, at_line, place_of
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.grouping import grouped
from ..views.listing import Listing, ListingForm
from ..views.view import Cell
from .stops import main_value, whole_ops

REPLICATED, REDUNDANT, UNPARTITIONED = "replicated", "computed by all", "unpartitioned"
UNKNOWN = "computed by all, flops unknown"


class Silent(NamedTuple):
    """An array or op that the devices along `axes` all store, or compute, in the same way.

    `bytes` is what a device stores beyond its equal share; of an unpartitioned op, what it receives for it. `flops` is what it
    computes in excess in a call, the rims of windows that overlap included.
    """

    what: str
    """The kind: `replicated`, `computed by all`, `computed by all, flops unknown` or `unpartitioned`."""
    value: str
    op: str
    axes: tuple[str, ...]
    bytes: int
    flops: int
    source: SourceLine | None

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
            ListingForm(
                "replicated values or redundant ops", _COLUMNS, _row, partial(_notes, self.share, total), spare=("op", "at")
            ),
        )

    @property
    def share(self) -> str:
        """The redundant flops as a share of all flops: `1.3%`; empty if there are none."""
        return f"{self.flops / self.total:.1%}" if self.flops and self.total else ""


def silent(plan: State) -> InExcess:
    """Lists everything redundant, largest first, measured as a share of a device's stored bytes or of its flops."""
    found = sorted((*rank, number, each) for rank, each in _ranked(plan) for number in each.numbers)
    rows = (_excess_text(plan, each, number) for *_, number, each in found)
    return InExcess(rows, redundant_flops(plan), flops_per_device(plan).known)


def _ranked(plan: State) -> Iterator[tuple[tuple[float, bool], _Alike]]:
    """Everything redundant, each with the rank of its numbers: how much it is, and whether it is the last of so much."""
    total, ends = max(flops_per_device(plan).known, 1), plan.once(_alike_ends)
    stored = max(sum(each.bytes * each.times for each in ends), 1)
    for each in (*_replicated(plan), *plan.once(_redundant), *_unpartitioned(plan)):
        yield (-max(each.bytes / stored, each.flops / total), each.what == UNPARTITIONED), each


class Row(NamedTuple):
    """What is silent and alike: the first of it, how many there are, and what they cost together."""

    first: Silent
    times: int
    bytes: int
    flops: int


class _Part(NamedTuple):
    """A part of a row, in which all cost the same: its rank, and that of its first number."""

    rank: tuple[float, bool, int]
    of: _Alike
    times: int


def silent_rows(plan: State, kinds: Sequence[int], most: int) -> list[Row]:
    """The first rows of it: a row has what is of one kind, and redundant in the same way.

    `kinds` are those of the arguments, the results and the ops, numbered in this order.
    """
    found: dict[object, list[_Part]] = {}
    for rank, each in _ranked(plan):
        for kind, numbers in grouped(each.numbers, kinds.__getitem__).items():
            part = _Part((*rank, numbers[0]), each, len(numbers))
            found.setdefault((kind, each.what, each.op, each.axes), []).append(part)
    first = nsmallest(most, found.values(), key=min)
    return [_together(plan, parts) for parts in first]


def _together(plan: State, parts: Sequence[_Part]) -> Row:
    first = min(parts)
    return Row(
        _excess_text(plan, first.of, first.rank[-1]),
        sum(each.times for each in parts),
        sum(each.times * each.of.bytes for each in parts),
        sum(each.times * each.of.flops for each in parts),
    )


def redundant_flops(plan: State) -> int:
    """The flops of a device in a call beyond its share. Of the branches of a `cond`, the one with the most counts."""
    where = plan.source.program.where
    return int(most((each.flops * len(each.numbers), where(each.region)) for each in plan.once(_redundant)))


def _ends(program: Program) -> int:
    """How many arguments and results there are: the number of the first op."""
    return len(program.arguments) + len(program.returned)


_COLUMNS = ("value", "op", "what", "along", "bytes", "flops", "at")


def _row(each: Silent) -> Sequence[Cell]:
    return each.value, each.op, each.what, ", ".join(each.axes), each.bytes, each.flops, place_of(each.source)


def _notes(share: str, total: int, found: Sequence[Silent]) -> list[str]:
    stored = sum(each.bytes for each in found if each.what == REPLICATED)
    said = [f"{stored:,} bytes of a device are stored by others too"] if stored else []
    said += [f"{share} of its {total:,} flops are redundant"] if share else []
    return ["; ".join(said)] if said else []


def _whole_on(plan: State, placed: Iterable[MeshAxis]) -> tuple[MeshAxis, ...]:
    """The mesh axes with more than one device that are not among `placed`."""
    return tuple(axis for axis in plan.decided.mesh.places if axis.size > 1 and axis not in placed)


def _texts(axes: Iterable[MeshAxis]) -> tuple[str, ...]:
    return tuple(map(str, axes))


def _excess(size: int, axes: Sequence[MeshAxis]) -> int:
    """The part of `size` beyond a device's share, if all devices of these axes have it."""
    return size - -(-size // prod(axis.size for axis in axes))


class _Alike(NamedTuple):
    """Arguments and results, or ops, by number, that are redundant in the same way, and what each of them costs."""

    what: str
    op: str
    axes: tuple[str, ...]
    bytes: int
    flops: int
    numbers: Sequence[int]
    region: int = 0


def _excess_text(plan: State, each: _Alike, number: int) -> Silent:
    """What is said of one of them."""
    program, names = plan.source.program, plan.source.addresses.names
    if each.what == REPLICATED:
        left = number - len(program.arguments)
        value = program.arguments[number] if left < 0 else program.returned[left]
        return Silent(each.what, names[value], "", each.axes, each.bytes, 0, None)
    node = program.nodes[number - _ends(program)]
    value = main_value(node)
    return Silent(each.what, names.get(value, ""), each.op, each.axes, each.bytes, each.flops, line_of(plan, value, node))


class _Ends(NamedTuple):
    """Arguments and results in one layout: the bytes of each on a device, and those of them that are not one of the others."""

    layout: Layout
    bytes: int
    times: int
    numbers: Sequence[int]


def _alike_ends(plan: State) -> Sequence[_Ends]:
    """Thousands of values have a few hundred layouts."""
    program, placements = plan.source.program, plan.decisions.placements
    outer, first = [*program.arguments, *program.returned], dict[ValueId, int]()
    for number, value in enumerate(outer):
        first.setdefault(value, number)
    layouts = [(boundary(placements, value), program.types[value].dtype) for value in outer]
    return [
        _Ends(
            layout,
            placements.local_bytes(outer[numbers[0]], layout),
            len(numbers),
            [number for number in numbers if first[outer[number]] == number],
        )
        for (layout, _), numbers in grouped(range(len(outer)), layouts.__getitem__).items()
    ]


def _replicated(plan: State) -> Iterator[_Alike]:
    """Yields the arguments and results that are replicated. Scalars are left out, because they cannot be tiled."""
    for each in plan.once(_alike_ends):
        axes = _whole_on(plan, each.layout.axes)
        if (excess := _excess(each.bytes, axes)) and each.layout.dims:
            yield _Alike(REPLICATED, "", _texts(axes), excess, 0, each.numbers)


def _redundant(plan: State) -> Sequence[_Alike]:
    """The ops that all devices of some axes run in full, or with overlapping windows, and the flops of that in a call."""
    return [*_each_redundant(plan)]


def _each_redundant(plan: State) -> Iterator[_Alike]:
    program, placements = plan.source.program, plan.decisions.placements
    first = _ends(program)
    for some, flops in plan.once(of_alike_ops):
        node = some[0]
        if flops == 0 or node.op_name == "whole" or not node.results:
            continue
        axes, numbers = _whole_on(plan, placements.axes(node)), [first + each.number for each in some]
        if flops is None:
            if axes:
                yield _Alike(UNKNOWN, shown_op_name(node), _texts(axes), 0, 0, numbers, node.region)
            continue
        overlaps = any(factor.has_halo for _, factor in placements.nodes[node.number].placement)
        rim = flops - (in_blocks(plan, node) or flops) if overlaps else 0
        if excess := (_excess(flops - rim, axes) + rim) * program.trips(node.region):
            yield _Alike(REDUNDANT, shown_op_name(node), _texts(axes), 0, excess, numbers, node.region)


def _unpartitioned(plan: State) -> Iterator[_Alike]:
    axes, first = _texts(_whole_on(plan, ())), _ends(plan.source.program)
    found = ((node, each) for node, each in whole_ops(plan) if not each.own)
    return (
        _Alike(UNPARTITIONED, each.primitive, axes, each.bytes, 0, [first + node.number], node.region) for node, each in found
    )
