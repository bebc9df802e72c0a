"""The meaning of the table at each op: the layout of every operand and every result, and the reductions left pending.

Derived from the definitions once for each distinct (signature, placement); a transformer has a few hundred of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat
from typing import cast

from ...dialects.layouts import Pending
from ...dialects.mesh import Mesh
from ..program.program import Node, Program, Signature
from .table import Table, Tile

Tiles = tuple[Tile, ...]
Pend = tuple[Pending, ...]
"""Pending reductions, in mesh order."""

Placement = tuple[tuple[str, int, int], ...]
"""(axis, index, stride) of each axis that an op's indices are placed on, in mesh order."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One op under one placement."""

    placement: Placement
    wanted: tuple[Tiles, ...]
    produced: tuple[Tiles, ...]
    pending: tuple[Pend, ...]


def place(signature: Signature, placement: Placement) -> Placed:
    """Slices the operands' dims with a placed index, tiles those of the results, and leaves folds pending."""
    found = signature.placed.get(placement)
    if found is None:
        wanted = tuple(_tiles(at, placement) for at in signature.operand_at)
        produced = tuple(_tiles(at, placement) for at in signature.result_at)
        found = signature.placed[placement] = Placed(placement, wanted, produced, _pending(signature, placement))
    return cast(Placed, found)


def _tiles(at: dict[int, tuple[int, int, int]], placement: Placement) -> Tiles:
    return tuple((axis, at[index][0], stride * at[index][1]) for axis, index, stride in placement if index in at)


def _pending(signature: Signature, placement: Placement) -> tuple[Pend, ...]:
    return tuple(folds + scans for folds, scans in zip(_folds(signature, placement), _scans(signature, placement), strict=True))


def _scans(signature: Signature, placement: Placement) -> tuple[Pend, ...]:
    """The pending scans that an op leaves: its blocks are scanned, but not yet combined."""
    scans = [(axis, index, scan) for axis, index, _ in placement if (scan := signature.instance.indices[index].scan)]
    return tuple(
        tuple(Pending(scan.monoid, axis, at[index][0], scan.backwards) for axis, index, scan in scans if index in at)
        for at in signature.result_at
    )


def _folds(signature: Signature, placement: Placement) -> tuple[Pend, ...]:
    monoids = [(axis, index, signature.instance.indices[index].monoid) for axis, index, _ in placement]
    folded = [(axis, index, monoid) for axis, index, monoid in monoids if monoid is not None]
    return tuple(tuple(Pending(m, axis) for axis, index, m in folded if index not in at) for at in signature.result_at)


def without(tiles: Tiles, axes: Iterable[str]) -> Tiles:
    """The tiles on axes other than `axes`."""
    return tuple(tile for tile in tiles if tile[0] not in axes)


@dataclass(slots=True)
class Placements:
    """Every op's `Placed`, every value's home layout, and the sources of pending sums."""

    table: Table
    program: Program
    mesh: Mesh
    nodes: list[Placed]
    fixed: dict[int, Tiles] = field(default_factory=dict[int, Tiles])
    settled: dict[int, Pend] = field(default_factory=dict[int, Pend])
    """Pending reductions that resolve where the value is made: scans of blocks, folds without a collective, and sums of ops
    that run on one device."""
    homes: list[Tiles] = field(default_factory=list[Tiles])
    sources: dict[int, Pend] = field(default_factory=dict[int, Pend])
    returns: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def home(self, value: int) -> Tiles:
        """The tiles of a value's own layout; its uses may need others."""
        return self.homes[value]

    def uses(self, value: int) -> list[tuple[int, int]]:
        """The uses of a value; returning it is a use by a node one past the last."""
        inside, returned = self.program.uses[value], self.returns.get(value)
        if returned is None:
            return inside
        end = len(self.program.nodes)
        return [*inside, *((end, position) for position in returned)]

    def wanted(self, number: int, position: int) -> Tiles:
        """The tiles that a use needs."""
        if number == len(self.program.nodes):
            return boundary(self, self.program.returned[position])
        return self.nodes[number].wanted[position]

    def reduced(self, node: Node, pend: Pend) -> Placed:
        """The op without its own placement on the pending axes."""
        axes = {each.axis for each in pend}
        kept = tuple(entry for entry in self.nodes[node.number].placement if entry[0] not in axes)
        return place(node.signature, kept)

    def local_bytes(self, value: int, tiles: Tiles) -> int:
        """The local bytes of the value on one device under these tiles."""
        size = self.program.bytes[value]
        for axis, _, _ in tiles:
            size //= self.mesh[axis]
        return size

    def trips(self, value: int) -> int:
        """How often one call computes the value."""
        return self.program.trips(self.program.region[value])


def read(table: Table) -> Placements:
    """Reads the whole table: each value from its producer, then the values that tactics placed directly."""
    program, mesh = table.program, table.mesh
    nodes = _placed(table)
    homes: list[Tiles] = [()] * len(program.types)
    sources: dict[int, Pend] = {}
    settled: dict[int, Pend] = {}
    returned = frozenset(program.returned)
    for value in program.arguments:
        homes[value] = table.tiles(value)
    for node, placed in zip(program.nodes, nodes, strict=True):
        for value, tiles, pend in zip(node.results, placed.produced, placed.pending, strict=True):
            homes[value] = tiles
            if pend:
                at_once = any(each.scans or each.is_gathered for each in pend) or (
                    node.signature.once and bool(program.uses[value] or value in returned)
                )
                (settled if at_once else sources)[value] = pend
    fixed = _fixed(table)
    for value, tiles in fixed.items():
        homes[value] = tiles
        sources.pop(value, None)
        settled.pop(value, None)
    returns: dict[int, list[int]] = {}
    for position, value in enumerate(program.returned):
        returns.setdefault(value, []).append(position)
    return Placements(table, program, mesh, nodes, fixed, settled, homes, sources, returns)


def _placed(table: Table) -> list[Placed]:
    """Every op under its claims along all axes."""
    axes = [axis for axis in table.mesh.axes if axis in table.axes]
    claims = zip(*(table.axes[axis].nodes for axis in axes), strict=True) if axes else repeat((), len(table.program.nodes))
    known: dict[object, Placed] = {}
    placed: list[Placed] = []
    for node, claimed in zip(table.program.nodes, claims, strict=True):
        key = node.signature, claimed
        found = known.get(key)
        if found is None:
            placement = tuple([(axis, c.at, c.stride) for axis, c in zip(axes, claimed, strict=True) if c is not None])
            found = known[key] = place(node.signature, placement)
        placed.append(found)
    return placed


def _fixed(table: Table) -> dict[int, Tiles]:
    """Values inside the program that a tactic placed or replicated directly."""
    producer = table.program.producer
    own = {v for t in table.axes.values() for v, claim in enumerate(t.values) if claim is not None and producer[v] >= 0}
    return {value: table.tiles(value) for value in own}


def boundary(placements: Placements, value: int) -> Tiles:
    """The layout at the program's boundary: contiguous blocks, because a NamedSharding can express only these."""
    shape = placements.program.shape(value)
    return natural_tiles(shape, placements.home(value), placements.mesh)


def natural_tiles(shape: tuple[int, ...], tiles: Tiles, mesh: Mesh) -> Tiles:
    """The same axes on the same dims, each dim's placed factors made the major ones.

    2*data*64 --> data*128
    """
    strides: dict[str, int] = {}
    for dim, extent in enumerate(shape):
        left = extent
        for axis, _, _ in sorted((t for t in tiles if t[1] == dim), key=lambda t: -t[2]):
            left //= mesh[axis]
            strides[axis] = left
    return tuple((axis, dim, strides[axis]) for axis, dim, _ in tiles)
