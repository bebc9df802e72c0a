"""Finds what several devices do although one would do: values that are replicated, ops computed by all, unpartitioned ops.

None of this is wrong, and much of it is small, but it does not show as a collective.

    params/norm (f32[64])                  stored in full by each device along `data` and `model`
    dot_general#7 (logits) at lm.py:40     computed in full by both devices along `model`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from ...dialects.ground.english import of_bytes, of_flops
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis
from ...rewrites.decide.placements import boundary
from ...rewrites.program.program import Node
from ..cost.counts import most
from ..cost.flops import flops_per_device, in_blocks, of_each_op, op_name
from ..inputs.lines import Source, at_line, place_of
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.listing import Listing, Shape
from ..views.view import Cell
from .stops import wholes

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
        """The redundant flops as a share of all flops: `1.3%`; empty if there are none."""
        return f"{self.flops / self.total:.1%}" if self.flops and self.total else ""


def silent(plan: State) -> InExcess:
    """Lists everything redundant, largest first, measured as a share of a device's stored bytes or of its flops."""
    program, placements = plan.source.program, plan.decisions.placements
    excesses = plan.once(_excesses)
    found = [*_replicated(plan), *(_of_node(plan, *each) for each in excesses), *_unpartitioned(plan)]
    stored = sum(map(placements.bytes_outside, (*program.arguments, *program.returned)))
    flops, total = _total(plan, excesses), flops_per_device(plan).known
    found.sort(key=lambda each: -max(each.bytes / max(stored, 1), each.flops / max(total, 1)))
    return InExcess(found, flops, total)


def redundant_flops(plan: State) -> int:
    """The flops of a device in a call beyond its share. Of the branches of a `cond`, the one with the most counts."""
    return _total(plan, plan.once(_excesses))


def _total(plan: State, excesses: Iterable[Excess]) -> int:
    return int(most((each.flops, plan.source.program.where(each.node.region)) for each in excesses))


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
    return tuple(axis for axis in plan.mesh.places if axis.size > 1 and axis not in placed)


def _excess(size: int, axes: Sequence[MeshAxis]) -> int:
    """The part of `size` beyond a device's share, if all devices of these axes have it."""
    return size - -(-size // prod(axis.size for axis in axes))


def _replicated(plan: State) -> Iterator[Silent]:
    """Yields the arguments and results that are replicated. Scalars are left out, because they cannot be tiled."""
    program, placements, names = plan.source.program, plan.decisions.placements, plan.source.addresses.names
    known: dict[tuple[Layout, int], tuple[tuple[str, ...], int]] = {}
    for value in dict.fromkeys((*program.arguments, *program.returned)):
        # Thousands of values have a few hundred layouts.
        layout = boundary(placements, value)
        key = layout, placements.local_bytes(value, layout)
        if key not in known:
            axes = _whole_on(plan, layout.axes)
            known[key] = tuple(map(str, axes)), _excess(key[1], axes)
        axes, excess = known[key]
        if excess and program.shape(value):
            yield Silent(REPLICATED, names[value], "", axes, excess, 0, None)


class Excess(NamedTuple):
    """An op that all devices of some axes run in full, or in overlapping windows, with the redundant flops in a call."""

    node: Node
    what: str
    axes: tuple[MeshAxis, ...]
    flops: int


def _excesses(plan: State) -> Sequence[Excess]:
    return list(_each_excess(plan))


def _each_excess(plan: State) -> Iterator[Excess]:
    program, placements, on_device = plan.source.program, plan.decisions.placements, plan.once(of_each_op)
    known: dict[int, tuple[tuple[MeshAxis, ...], bool]] = {}
    for node, placed in zip(program.nodes, placements.nodes, strict=True):
        flops = on_device[node.number] if node.kind != "whole" and node.results else 0
        if flops == 0:
            continue
        # Ops that are alike share where they are placed.
        if id(placed) not in known:
            halos = any(factor.has_halo for _, factor in placed.placement)
            known[id(placed)] = _whole_on(plan, placements.axes(node)), halos
        axes, overlaps = known[id(placed)]
        if flops is None:
            if axes:
                yield Excess(node, UNKNOWN, axes, 0)
            continue
        rim = flops - (in_blocks(plan, node) or flops) if overlaps else 0
        if excess := (_excess(flops - rim, axes) + rim) * program.trips(node.region):
            yield Excess(node, REDUNDANT, axes, excess)


def _of_node(plan: State, node: Node, what: str, axes: tuple[MeshAxis, ...], flops: int) -> Silent:
    name, source = plan.source.addresses.names[node.results[0]], line_of(plan, node.results[0], node)
    return Silent(what, name, op_name(node), tuple(map(str, axes)), 0, flops, source)


def _unpartitioned(plan: State) -> Iterator[Silent]:
    for each in wholes(plan):
        if not each.own:
            yield Silent(
                UNPARTITIONED, each.value, each.primitive, tuple(map(str, _whole_on(plan, ()))), each.bytes, 0, each.source
            )
