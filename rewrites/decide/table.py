"""The table of a plan: where the indices of each op, and the dims of each value, are placed.

There is one `AxisTable` for each mesh axis. A tactic copies the tables that it changes, and never the program. A claim stores
the number of the tactic that made it, so that a plan can report which tactic decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...dialects.layouts import chain_ok
from ...dialects.mesh import Mesh
from ..program.program import Node, Program
from .requirements import is_lawful

Tile = tuple[str, int, int]
"""(axis, dim, stride): the axis' coordinate advances by `stride` elements of the dim."""

WHOLE = -1
"""The dim of a claim that keeps a value replicated along the axis."""


class Claim(NamedTuple):
    """An axis at an index of an op, or at a dim of a value: which, the stride in elements, and the tactic's number.

    A `held` claim applies only to its own op or value: no later tactic propagates it.
    """

    at: int
    stride: int
    tactic: int
    held: bool = False


@dataclass(slots=True)
class AxisTable:
    """Claims along one mesh axis: per node at most one index, per value at most one dim."""

    size: int
    nodes: list[Claim | None]
    values: list[Claim | None]

    def copy(self) -> AxisTable:
        """A table that can change while the old plan keeps its own."""
        return AxisTable(self.size, self.nodes.copy(), self.values.copy())


@dataclass(frozen=True, slots=True)
class Blocked:
    """An op where propagation stopped because an extent does not divide, or a dim cannot be placed."""

    node: int
    operand: int
    axis: str
    dim: int
    extent: int
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Claims that cannot all hold at one op (or, with `node` -1, at one argument)."""

    node: int
    value: int
    axis: str
    claims: tuple[tuple[Claim, int], ...]
    """Each claim, and the position of its value at the op."""


@dataclass(slots=True)
class Table:
    """All axis tables of a plan over one program and mesh."""

    program: Program
    mesh: Mesh
    axes: dict[str, AxisTable] = field(default_factory=dict[str, AxisTable])
    blocked: dict[tuple[int, int, str], Blocked] = field(default_factory=dict[tuple[int, int, str], Blocked])
    conflicts: dict[tuple[int, int, str], Conflict] = field(default_factory=dict[tuple[int, int, str], Conflict])

    def copy(self) -> Table:
        """A table that shares every axis until `touch`."""
        return Table(self.program, self.mesh, dict(self.axes), dict(self.blocked), dict(self.conflicts))

    def touch(self, axis: str) -> AxisTable:
        """The axis' own copy in this table."""
        old = self.axes.get(axis)
        if old is None:
            program = self.program
            none = AxisTable(self.mesh[axis], [None] * len(program.nodes), [None] * len(program.types))
            self.axes[axis] = none
            return none
        new = self.axes[axis] = old.copy()
        return new

    def claim(self, value: int, axis: str) -> Claim | None:
        """The dim of the axis in a value: claimed for the value itself, or produced by its op; None or WHOLE if it has none."""
        table = self.axes.get(axis)
        return None if table is None else claim_of(self.program, table, value)

    def tiles(self, value: int) -> tuple[Tile, ...]:
        """The tiles of a value's own layout, pending sums left out."""
        found = ((axis, self.claim(value, axis)) for axis in self.mesh.axes)
        return tuple((axis, c.at, c.stride) for axis, c in found if c is not None and c.at != WHOLE)

    def fits_value(self, value: int, axis: str, dim: int, stride: int) -> bool:
        """Whether the axis' factor fits into the dim beside the factors already there."""
        others = ((self.mesh[a], c) for a in self.axes if a != axis and (c := self.claim(value, a)) is not None)
        factors = [(c.stride, size) for size, c in others if c.at == dim]
        return chain_ok(self.program.shape(value)[dim], [*factors, (stride, self.mesh[axis])])

    def fits_node(self, node: Node, axis: str, index: int, stride: int) -> bool:
        """Whether the axis' factor fits into an index beside the factors already there."""
        factors = [(stride, self.mesh[axis])]
        for other, table in self.axes.items():
            claim = table.nodes[node.number] if other != axis else None
            if claim is not None and claim.at == index:
                factors.append((claim.stride, table.size))
        info = node.signature.instance.indices[index]
        whole_blocks = not (info.value or info.lookups or info.scan) or contiguous(info.extent, factors)
        lawful = not (info.value or info.lookups or info.scan or info.once) or is_lawful(info)
        return chain_ok(info.extent, factors) and whole_blocks and lawful and self.fits_results(node, axis, index, stride)

    def fits_results(self, node: Node, axis: str, index: int, stride: int) -> bool:
        """Whether a result that a tactic placed by itself, on other axes, has room for the index' factor too."""
        for value, at in zip(node.results, node.signature.result_at, strict=True):
            if index not in at:
                continue
            claimed = [name for name, table in self.axes.items() if table.values[value] is not None]
            if claimed and axis not in claimed:
                dim, minor, _ = at[index]
                if not self.fits_value(value, axis, dim, stride * minor):
                    return False
        return True


def contiguous(extent: int, factors: list[tuple[int, int]]) -> bool:
    """Whether the placed factors are the major ones, so that a device holds one run of consecutive elements."""
    left = extent
    for stride, size in sorted(factors, reverse=True):
        if stride * size != left:
            return False
        left = stride
    return True


def claim_of(program: Program, table: AxisTable, value: int) -> Claim | None:
    """A value's claim along the axis of `table`; a value's own claim has priority over what its op produces."""
    own = table.values[value]
    return produced(program, table, value) if own is None else own


def produced(program: Program, table: AxisTable, value: int) -> Claim | None:
    """The claim along the axis of `table` that a value has from the op that computes it."""
    number = program.producer[value]
    if number < 0:
        return None
    claim = table.nodes[number]
    if claim is None:
        return None
    node = program.nodes[number]
    results = node.signature.result_at
    at = results[0] if len(results) == 1 else results[node.results.index(value)]
    position = at.get(claim.at)
    return None if position is None else Claim(position[0], claim.stride * position[1], claim.tactic, claim.held)


def take(table: Table, value: int, axis: str, claim: Claim) -> None:
    """Claims a value's own layout along an axis, which may leave the dim on which the value's op puts it.

    The value's own claims that are minor to it on that dim take its room: two axes may change places, one after the other.

        f32[x*8, y*4]   -- x on dim 1 -->   f32[16, y*x*2]   -- y on dim 0 -->   f32[y*8, x*4]
    """
    left, size = table.claim(value, axis), table.mesh[axis]
    table.axes[axis].values[value] = claim
    if left is None or left.at in (WHOLE, claim.at):
        return
    for other in table.axes:
        own = table.axes[other].values[value]
        if own is not None and own.at == left.at and own.stride < left.stride:
            table.touch(other).values[value] = own._replace(stride=own.stride * size)


def natural(table: Table, value: int, dim: int, axis: str) -> int | None:
    """The stride at which a tile of `axis` splits the local part of a dim; None if that does not divide."""
    strides = [stride for _, at, stride in table.tiles(value) if at == dim]
    block = min(strides, default=table.program.shape(value)[dim])
    size = table.mesh[axis]
    return None if block % size else block // size


def same(left: Mapping[str, AxisTable], right: Mapping[str, AxisTable]) -> bool:
    """Whether two tables have equal placements, ignoring which tactic made them."""

    def bare(claims: list[Claim | None]) -> list[tuple[int, int] | None]:
        return [None if claim is None else claim[:2] for claim in claims]

    return left.keys() == right.keys() and all(
        bare(left[a].nodes) == bare(right[a].nodes) and bare(left[a].values) == bare(right[a].values) for a in left
    )
