"""Finds what several devices do although one would do: values that are replicated, ops computed by all, unpartitioned ops.

None of this is wrong, and much of it is small, but it does not show as a collective.

    params/norm (f32[64])                  stored in full by each device along `data` and `model`
    dot_general#7 (logits) at lm.py:40     computed in full by both devices along `model`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import nsmallest
from itertools import islice
from math import prod
from operator import itemgetter
from typing import NamedTuple

from ...dialects.ground.amounts import of_bytes, of_flops
from ...dialects.ranges.algebra import Place
from ...rewrites.program.program import Program
from ..cost.alike_ends import alike_ends, ends
from ..cost.as_lowered import trips_around
from ..cost.collectives import bytes_by_axes
from ..cost.costs import price_over
from ..cost.counts import most
from ..cost.flops import computed_on, flops_per_device, in_blocks, of_alike_ops, shown_op_name
from ..inputs.lines import SourceLine, at_line, place_of
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.listing import Listing, ListingForm
from ..views.view import Cell
from .stops import whole_ops

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
    """Lists everything redundant, largest first, measured as a share of what a device stores, or of the time of a call."""
    found = sorted((*rank, number, each) for rank, each in _ranked(plan) for number in each.numbers)
    rows = (_excess_text(plan, each, number) for *_, number, each in found)
    return InExcess(rows, redundant_flops(plan), flops_per_device(plan).known)


def _ranked(plan: State) -> Iterator[tuple[tuple[float, bool], _Alike]]:
    """Everything redundant, each with the rank of its numbers: how much it is, and whether it is the last of so much."""
    stored = sum(each.bytes * len(each.numbers) for each in plan.once(alike_ends)) or 1
    for each in _replicated(plan):
        yield (-each.bytes / stored, False), each
    time = price_over(plan, bytes_by_axes(plan), flops_per_device(plan).known).seconds or 1
    for each in (*plan.once(_redundant), *_unpartitioned(plan)):
        yield (-price_over(plan, {each.axes: each.bytes}, each.flops).seconds / time, each.what == UNPARTITIONED), each


class Row(NamedTuple):
    """What is silent and alike: the first of it, how many there are, and what they cost together."""

    first: Silent
    times: int
    bytes: int
    flops: int


def silent_rows(plan: State, kinds: Sequence[int], most: int) -> list[Row]:
    """The first rows of it: a row has what is of one kind, and redundant in the same way.

    `kinds` are those of the arguments, the results and the ops, numbered in this order.
    """
    ways: dict[object, list[tuple[_Alike, Counter[int]]]] = {}
    places: dict[tuple[object, int], tuple[tuple[float, bool, int], _Alike]] = {}
    for rank, each in _ranked(plan):
        way, its = (each.what, each.op, each.axes), [kinds[number] for number in each.numbers]
        counted, first = Counter(its), dict(zip(reversed(its), reversed(each.numbers), strict=True))
        ways.setdefault(way, []).append((each, counted))
        # The kinds come in the order of their first numbers, and no more of them than that can have one of the first rows.
        for kind in islice(counted, most):
            place = (*rank, first[kind]), each
            places[way, kind] = min(place, places.get((way, kind), place))
    rows = nsmallest(most, places.items(), key=itemgetter(1))
    return [_row_of(plan, *place, [(each, counted[kind]) for each, counted in ways[way]]) for (way, kind), place in rows]


def _row_of(plan: State, rank: tuple[float, bool, int], first: _Alike, parts: Sequence[tuple[_Alike, int]]) -> Row:
    return Row(
        _excess_text(plan, first, rank[-1]),
        sum(times for _, times in parts),
        sum(times * each.bytes for each, times in parts),
        sum(times * each.flops for each, times in parts),
    )


def redundant_flops(plan: State) -> int:
    """The flops of a device in a call beyond its share. Of the branches of a `cond`, the one with the most counts."""
    program, sets = plan.source.program, plan.table.sets
    if sets is None:
        found = ((each, len(each.numbers)) for each in plan.once(_redundant))
    else:
        # Of the set on which a device computes most.
        on = max(sets.every, key=lambda on: computed_on(plan, sets, on).known)
        first = _ends(program)
        there = ((each, [sets.ops[number - first] is on for number in each.numbers]) for each in plan.once(_redundant))
        found = ((each, sum(own)) for each, own in there)
    return int(most((each.flops * count, program.where(each.region)) for each, count in found))


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


def _whole_on(plan: State, placed: Iterable[Place]) -> tuple[Place, ...]:
    """The axes of a device set with more than one device that are not among `placed`."""
    # Device sets do not do the same.
    places = (axis for axis in plan.decided.mesh.places if axis.name not in plan.mesh.apart)
    return tuple(axis for axis in places if axis.size > 1 and axis not in placed)


def _texts(axes: Iterable[Place]) -> tuple[str, ...]:
    return tuple(map(str, axes))


def _excess(size: int, axes: Sequence[Place]) -> int:
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
    value = node.main
    return Silent(each.what, names.get(value, ""), each.op, each.axes, each.bytes, each.flops, line_of(plan, value, node))


def _replicated(plan: State) -> Iterator[_Alike]:
    """Yields the arguments and results that are replicated. Scalars are left out, because they cannot be tiled."""
    outer = ends(plan.source.program)
    # Of a value that is several of them, the first.
    again = {*range(len(outer))}.difference(dict(zip(outer[::-1], reversed(range(len(outer))), strict=True)).values())
    for each in plan.once(alike_ends):
        axes = _whole_on(plan, each.layout.axes)
        if (excess := _excess(each.bytes, axes)) and each.layout.dims:
            numbers = [number for number in each.numbers if number not in again] if again else each.numbers
            yield _Alike(REPLICATED, "", _texts(axes), excess, 0, numbers)


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
        if excess := (_excess(flops - rim, axes) + rim) * program.trips(node.region) * trips_around(plan, node):
            yield _Alike(REDUNDANT, shown_op_name(node), _texts(axes), 0, excess, numbers, node.region)


def _unpartitioned(plan: State) -> Iterator[_Alike]:
    axes, first = _texts(_whole_on(plan, ())), _ends(plan.source.program)
    found = ((node, each) for node, each in whole_ops(plan) if not each.own)
    return (
        _Alike(UNPARTITIONED, each.primitive, axes, each.bytes, 0, [first + node.number], node.region) for node, each in found
    )
