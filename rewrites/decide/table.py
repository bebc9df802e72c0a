"""The table of a plan: where the indices of each op, and the dims of each value, are placed.

There is one `AxisTable` for each mesh axis. A tactic copies the tables that it changes, and never the program. A claim stores
the number of the tactic that made it, so that a plan can report which tactic decided.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from ...dialects.definitions.requirement_terms import Held, Merging, Selection
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Axis, Loop, Place, Product, SubAxis
from ...dialects.ranges.factor import Factor, fit, is_padded, joined, settled
from ..program.program import Node, NodeId, Program, Signature, ValueId
from ..redistribute.kinds.merge import pays
from .device_sets import DeviceSets
from .requirements import Placing, is_lawful

WHOLE = -1
"""The `at` of a claim that keeps a value replicated along the axis."""

CLOSED = "the program says of this dim how it lies"
COUNTS = "here its padding would count"
FEW = "a device has no more of it than what the op selects"
UNEVEN = "does not divide"
"""Why a factor does not fit, where nothing more can be said of it."""


class Claim(NamedTuple):
    """A placed factor of an index of an op, or of a dim of a value, and the number of the tactic that placed it.

    With a factor of stride 0, `at` is WHOLE: the value is replicated. If several axes hold windows of one index together, each
    of their factors has the halo, and `settled` leaves it to the minor one. A `held` claim applies only to its own op or value:
    no later tactic propagates it.
    """

    at: int
    factor: Factor
    tactic: int
    held: bool = False

    def moved(self, at: int, factor: Factor) -> Claim:
        """The claim on another index or dim, by the same tactic; itself if neither differs, as mostly."""
        if at == self.at and factor is self.factor:
            return self
        return Claim(at, factor, self.tactic, self.held)


@dataclass(slots=True)
class AxisTable:
    """Claims along one mesh axis: per node at most one index, per value at most one dim; `whole` is its factor of stride 0."""

    whole: Factor
    nodes: list[Claim | None]
    values: list[Claim | None]
    points: frozenset[NodeId] = frozenset()
    """The constraints that set their result's layout along the axis: points of redistribution, which no claim crosses."""

    def __repr__(self) -> str:
        claims = sum(each is not None for each in self.nodes)
        return f"AxisTable({self.whole.place}: claims on {claims:,} of {len(self.nodes):,} ops)"

    def copy(self) -> AxisTable:
        """A table that can change while the old plan keeps its own."""
        return AxisTable(self.whole, self.nodes.copy(), self.values.copy(), self.points)

    def part(self, whole: Factor, minor: int) -> AxisTable:
        """The claims of a sub-axis whose neighbouring devices are `minor` devices of the axis apart.

        ```
        data*16 (8 devices), the major 2 of them   -->   data.0:2*64
        ```
        """

        def split(claim: Claim | None) -> Claim | None:
            return None if claim is None else of_part(claim, whole.place, minor)

        return AxisTable(whole, [*map(split, self.nodes)], [*map(split, self.values)], self.points)


def of_part(claim: Claim, part: Place | Product, minor: int) -> Claim:
    """The claim of a sub-axis whose neighbouring devices are `minor` devices of the axis apart."""
    return claim._replace(factor=Factor(part, claim.factor.stride, claim.factor.halo).spread(minor))


class Weight(NamedTuple):
    """A dim of an argument, and how many elements are in the parts of its result that ops take."""

    value: ValueId
    dim: int
    part: int


@dataclass(frozen=True, slots=True)
class BlockedOp:
    """An op where propagation stopped because an extent does not divide, or a dim cannot be placed."""

    node: NodeId
    operand: int
    axis: Place
    dim: int
    extent: int
    factor: Factor
    reason: str
    tactic: int
    """The number of the tactic whose claim stops here."""
    weight: Weight | None = None
    """The dim that the tactic leaves whole because its claim would stop here; None if it has made the claim."""

    @property
    def size(self) -> int:
        """How many devices there are along the axis."""
        return self.factor.size


Key: TypeAlias = tuple[NodeId, ValueId, Place]
"""Where claims meet: an op or NO_NODE, an argument or NO_VALUE, and the axis."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Claims that cannot all hold at one op (or, with `node` NO_NODE, at one argument)."""

    node: NodeId
    value: ValueId
    axis: Place
    claims: tuple[tuple[Claim, int], ...]
    """Each claim, and the position of its value at the op."""


@dataclass(slots=True)
class Table:
    """All axis tables of a plan over one program."""

    program: Program
    axes: dict[Place, AxisTable] = field(default_factory=dict[Place, AxisTable])
    blocked: dict[tuple[NodeId, int, Place], BlockedOp] = field(default_factory=dict[tuple[NodeId, int, Place], BlockedOp])
    conflicts: dict[Key, Clash] = field(default_factory=dict[Key, Clash])
    widened: frozenset[ValueId] = frozenset()
    """Values that are computed in the windows in which their uses read them, instead of being exchanged."""
    each_trip: frozenset[ValueId] = frozenset()
    """Arguments that loops gather in every trip, and not once before the first one."""
    sets: DeviceSets | None = None
    """Where each op runs, if tactics put some on parts of the mesh."""
    may_split: bool = True
    """Whether decisions may split axes into sub-axes. A derivative follows the splits of its function, and makes none."""
    closed: dict[ValueId, frozenset[int]] = field(default_factory=dict[ValueId, frozenset[int]])
    """Values whose layout the program sets -> the dims that it sets, on which propagation puts no other axis."""
    reconciled: dict[Key, Clash] = field(default_factory=dict[Key, Clash])
    """Conflicts of the program's claims alone: an op takes the claim that receives least, and an argument stays whole."""
    too_wide: dict[tuple[ValueId, Place], tuple[Factor, bool]] = field(
        default_factory=dict[tuple[ValueId, Place], tuple[Factor, bool]]
    )
    """Values of `widened` with a window wider than all blocks of the axis -> it, and whether its uses read windows far apart.

    Found by one propagation.
    """

    def __repr__(self) -> str:
        return f"Table({len(self.program.nodes):,} ops)"

    def copy(self) -> Table:
        """A table that shares every axis's table until `touch`."""
        return replace(
            self,
            axes=dict(self.axes),
            blocked=dict(self.blocked),
            conflicts=dict(self.conflicts),
            closed=dict(self.closed),
            reconciled=dict(self.reconciled),
            too_wide={},
        )

    @property
    def has_loops(self) -> bool:
        """Whether anything is placed on a loop."""
        return any(isinstance(axis, Loop) for axis in self.axes)

    def is_apart(self, node: Node) -> bool:
        """Whether an op reads what is made on another device set."""
        return self.sets is not None and self.sets.is_apart(node)

    def in_space(self) -> Table:
        """The placements on axes alone, without those on loops."""
        return self.without([axis for axis in self.axes if isinstance(axis, Loop)])

    def without(self, axes: Container[Place]) -> Table:
        """The placements on all axes but these."""
        return replace(
            self,
            axes={axis: claims for axis, claims in self.axes.items() if axis not in axes},
            blocked={key: each for key, each in self.blocked.items() if each.axis not in axes},
            conflicts={key: each for key, each in self.conflicts.items() if each.axis not in axes},
            closed=dict(self.closed),
            reconciled={key: each for key, each in self.reconciled.items() if each.axis not in axes},
            too_wide={},
        )

    def refined(self, split: Mapping[Place, Sequence[Place]]) -> Table:
        """The same placements with sub-axes instead of the axes in `split`; what was blocked along those is dropped."""
        made, minors = self.without(split), dict[Place, int]()
        made.axes, made.reconciled = {}, {}
        for axis, table in self.axes.items():
            minor = axis.size
            for part in split.get(axis, (axis,)):
                minors[part] = minor = minor // part.size
                if part is axis:
                    made.axes[part] = table
                elif part.size > 1:
                    made.axes[part] = table.part(Factor(part, 0), minor)
        for (node, value, axis), each in self.reconciled.items():
            for part in (part for part in split.get(axis, (axis,)) if part in made.axes):
                claims = tuple((claim if part is axis else of_part(claim, part, minors[part]), at) for claim, at in each.claims)
                made.reconciled[node, value, part] = replace(each, axis=part, claims=claims)
        return made

    def ways_across(self, stop: BlockedOp) -> tuple[int, ...]:
        """The sizes of sub-axes, major to minor, that each fit one index of the dim at which an axis stopped; () if none do.

        ```
        dim of (i: 4, j: 4), data*2 (8 devices)   -->   4, 2: the major part lies in i, the other one in j
        ```
        """
        if not isinstance(stop.axis, Axis) or stop.weight is not None or stop.axis in self.program.mapped:
            return ()
        node, factor = self.program.nodes[stop.node], stop.factor
        dims = node.signature.operand_dims[stop.operand] if stop.operand >= 0 else node.signature.result_dims[-1 - stop.operand]
        digits = dims[stop.dim]
        between = {digit.minor for digit in digits if factor.stride < digit.minor < factor.span}
        ends = [factor.span, *sorted(between, reverse=True), factor.stride]
        if not between or factor.has_halo or is_padded(stop.extent, [factor]) or any(a % b for a, b in pairwise(ends)):
            return ()
        sizes = tuple(a // b for a, b in pairwise(ends))
        others = replace(self, axes={axis: table for axis, table in self.axes.items() if axis != stop.axis})
        for number, stride in enumerate(ends[1:]):
            digit = next((each for each in digits if each.minor <= stride), digits[-1])
            part = Factor(SubAxis(stop.axis, sizes, number), stride)
            index = digit.inward(part, False, node.signature.shifts)
            if index is None or others.misfit(node, digit.at, index) is not None:
                return ()
        return sizes

    def blank(self, axis: Place) -> AxisTable:
        """A new table of the axis, without claims."""
        none = AxisTable(Factor(axis, 0), [None] * len(self.program.nodes), [None] * len(self.program.types))
        self.axes[axis] = none
        return none

    def touch(self, axis: Place) -> AxisTable:
        """The axis's table, as this table's own copy."""
        old = self.axes.get(axis)
        if old is None:
            return self.blank(axis)
        new = self.axes[axis] = old.copy()
        return new

    def claim(self, value: ValueId, axis: Place) -> Claim | None:
        """A value's claim on the axis: its own, or the one that its op gives it.

        None or WHOLE if it is not tiled on the axis.
        """
        table = self.axes.get(axis)
        return None if table is None else claim_of(self.program, table, value)

    def stops(self, axis: Place) -> set[NodeId]:
        """The ops at which claims on an axis stop, or are in conflict."""
        return {key[0] for key in (*self.blocked, *self.conflicts) if key[2] == axis}

    def is_stopped(self, value: ValueId, axis: Place) -> bool:
        """Whether the value lies whole on an axis because claims ended at an op that it is computed from.

        They stop there, are in conflict, or another claim makes the op a fold.
        """
        stops = self.stops(axis)
        makers = self.program.upstream([value], lambda node: all(self.claim(made, axis) is None for made in node.results))
        return any(node.number in stops or self.is_outvoted(node, axis) for node in makers)

    def is_outvoted(self, node: Node, axis: Place) -> bool:
        """Whether an op folds along an axis, and so no claim on another of its operands reaches the result.

        gather %t {data*8, 64}, %i {data*4}   -->   the sum over rows of %t has the axis, and the claim on %i ends
        """
        if (own := self.axes[axis].nodes[node.number]) is None:
            return False
        ends = zip(node.operands, node.signature.operand_dims, strict=True)
        claims = ((self.claim(value, axis), dims) for value, dims in ends)
        asked = (digit.at for claim, dims in claims if claim is not None and claim.at != WHOLE for digit in dims[claim.at])
        return any(at != own.at and at in node.signature.result_at[0] for at in asked)

    def layout(self, value: ValueId) -> Layout:
        """A value's own layout, pending sums left out."""
        claims = [c for axis in self.axes if (c := self.claim(value, axis)) is not None and c.at != WHOLE]
        return Layout.of(self.program.shape(value), [(c.at, c.factor) for c in claims])

    def on_dim(self, value: ValueId, dim: int, but: Place | None = None) -> list[Factor]:
        """The factors of a dim of a value, on all axes but one."""
        claims = (self.claim(value, axis) for axis in self.axes if axis != but)
        return _factors(claims, dim, self.program.shape(value)[dim])

    def on_index(self, node: Node, index: int, but: Place | None = None) -> list[Factor]:
        """The factors of an index of an op, on all axes but one."""
        claims = (table.nodes[node.number] for axis, table in self.axes.items() if axis != but)
        return _factors(claims, index, node.signature.indices[index].extent)

    def fits_value(self, value: ValueId, dim: int, factor: Factor) -> bool:
        """Whether a factor fits into the dim beside the factors already there."""
        return fit(self.program.shape(value)[dim], [*self.on_dim(value, dim, factor.axis), factor])

    def misfit(self, node: Node, index: int, factor: Factor) -> str | None:
        """Why a factor on an axis that the op does not use yet does not fit into an index; None if it does.

        Of a text, `{block}` and `{size}` are the factor's.
        """
        if self.closed and self.is_closed(node, index):
            return CLOSED
        factors = [factor]
        rivals = node.signature.rivals.get(index, ())
        for table in self.axes.values():
            claim = table.nodes[node.number]
            if claim is None:
                continue
            if claim.at == index:
                factors.append(claim.factor)
            elif claim.at in rivals or (
                (factor.has_halo or claim.factor.has_halo) and node.signature.are_beside(index, claim.at)
            ):
                return UNEVEN
        for merging in node.signature.indices[index].parts(Merging):
            if len(factors) > 1 and any(isinstance(each.place, Loop) for each in factors):
                return "a merge of {size} blocks is over axes, or over one loop"
            if not self.pays(node, merging, factors):
                return "a merge of {size} blocks would receive more than a gather"
        return misfit(node.signature, index, factors) or (None if self.fits_results(node, index, factor) else UNEVEN)

    def is_closed(self, node: Node, index: int) -> bool:
        """Whether the index is a dim of the op's result whose layout the program sets: propagation may add nothing to it."""
        dims = self.closed.get(node.results[0]) if node.results else None
        return dims is not None and index in (at := node.signature.result_at[0]) and at[index].dim in dims

    def pays(self, node: Node, merging: Merging, factors: Iterable[Factor]) -> bool:
        """Whether merging blocks of a node's operands receives no more than gathering those that devices cannot make alone."""
        producers = [self.program.producer[value] for value in node.operands]
        free = [at for at, number in enumerate(producers) if number >= 0 and not self.program.nodes[number].operands]
        return pays(merging, prod(factor.size for factor in factors), free)

    def fits_results(self, node: Node, index: int, factor: Factor) -> bool:
        """Whether a result that a tactic placed by itself, on other axes, has room for the index's factor too."""
        for table in self.axes.values():
            for position, value in enumerate(node.results):
                if table.values[value] is not None and (at := node.signature.result_at[position].get(index)) is not None:
                    own = self.axes.get(factor.axis)
                    if (own is None or own.values[value] is None) and not self.fits_value(value, at.dim, at.outward(factor)):
                        return False
        return True


def _factors(claims: Iterable[Claim | None], at: int, extent: int) -> list[Factor]:
    return settled(extent, [claim.factor for claim in claims if claim is not None and claim.at == at])


def misfit(signature: Signature, index: int, factors: Iterable[Factor]) -> str | None:
    """Why an index cannot be placed by these factors together, by its extent and by the laws for what placing it requires."""
    known, key = signature.misfits, (index, *factors)
    if key not in known:
        known[key] = _misfit(signature, index, key[1:])
    return known[key]


def _misfit(signature: Signature, index: int, factors: Sequence[Factor]) -> str | None:
    info = signature.indices[index]
    if info.extent == 0:
        return UNEVEN
    factors = settled(info.extent, [*factors])
    pads, placing = is_padded(info.extent, factors), Placing.of(info.extent, factors)
    in_turn = placing.held is Held.TURNS
    here = info.extent // prod(factor.size for factor in factors) if in_turn else placing.block
    if any(here <= each.cost for each in info.parts(Selection)):
        return "its blocks of {block} are no larger than what the op selects of each" if not in_turn else FEW
    if pads and signature.is_minor(index):
        return "here its padding would leave holes"
    lawful = not (pads and in_turn) and is_lawful(info, placing._replace(block=1))
    if lawful and fit(info.extent, factors) and _windows_fit(signature, index, factors):
        return None
    return COUNTS if pads else "needs one block on each device" if in_turn else UNEVEN


def _windows_fit(signature: Signature, index: int, factors: Sequence[Factor]) -> bool:
    """Whether an index can be placed by these factors as far as it, or what is read along it, then comes in windows."""
    reaches = signature.reaches(index)
    if not (reaches or any(factor.has_halo for factor in factors)):
        return True
    extent = signature.indices[index].extent
    one = joined(extent, factors)
    if len(factors) > 1 and any(isinstance(factor.place, Loop) for factor in factors):
        return False
    if one is None or (one.has_halo and not signature.follows_windows(index, one)):
        return False
    blocks = one.covers(extent) or one.is_in_turn(extent)
    return not reaches or (blocks and all(reach.outward(one) is not None for reach in reaches))


def claim_of(program: Program, table: AxisTable, value: ValueId) -> Claim | None:
    """A value's claim along the axis of `table`; its own claim has priority over the one from its op."""
    own = table.values[value]
    return produced(program, table, value) if own is None else own


def produced(program: Program, table: AxisTable, value: ValueId) -> Claim | None:
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
    return None if position is None else claim.moved(position.dim, position.outward(claim.factor))


def claim_layout(table: Table, value: ValueId, axis: Place, claim: Claim) -> None:
    """Claims a value's own layout along an axis, which may leave the dim on which the value's op puts it.

    Claims on that dim that are minor to it move into its room, so that two axes can change places, one after the other: the
    value's own claims always, its op's claims only if they would not fit otherwise. A claim that does not fit even then leaves
    the dim.

        f32[x*8, y*4]   -- x on dim 1 -->   f32[16, y*x*2]   -- y on dim 0 -->   f32[y*8, x*4]
        f32[x*2*y pad 3, 8] (2 x 2)   -- x on dim 1 -->   f32[y*2 pad 3, x*4]
    """
    left = table.claim(value, axis)
    table.axes[axis].values[value] = claim
    if left is None or left.at in (WHOLE, claim.at):
        return
    fits = fit(table.program.shape(value)[left.at], table.on_dim(value, left.at))
    for other in list(table.axes):
        own = table.axes[other].values[value] if fits else table.claim(value, other)
        if own is not None and own.at == left.at and own.factor.stride < left.factor.stride:
            table.touch(other).values[value] = own._replace(factor=own.factor.spread(left.factor.size))
    if fit(table.program.shape(value)[left.at], table.on_dim(value, left.at)):
        return
    # With windows that run backwards, one axis alone does not cover all rows.
    for other in list(table.axes):
        if (own := table.claim(value, other)) is not None and own.at == left.at:
            table.touch(other).values[value] = own._replace(at=WHOLE, factor=table.axes[other].whole)


def next_factor(table: Table, value: ValueId, dim: int, axis: Place, pads: int = 0, run: int | None = None) -> Factor | None:
    """The factor of `axis` that splits the local part of a dim; None if that does not divide.

    With `pads`, a dim that is not tiled yet may be padded, to a multiple of it: 30 over 8 devices is `data*4 pad 30`. With
    `run`, a dim that is not tiled yet is split in each run of so many elements: 256 in runs of 64 over 8 is `4*data*8`.
    """
    factors = table.on_dim(value, dim)
    strides = [factor.stride for factor in factors]
    block = min(strides, default=run or table.program.shape(value)[dim])
    size = axis.size
    if pads and not strides and block > 1:
        block = -(-block // pads) * pads
    if block < 1 or block % size:
        return None
    # Of windows, each part has the halo. Windows on an axis have no parts on a loop.
    halo = factors[-1].halo if factors else None
    if halo is not None and (isinstance(axis, Loop) or any(isinstance(each.place, Loop) for each in factors)):
        return None
    return Factor(axis, block // size, halo)


def same(left: Mapping[Place, AxisTable], right: Mapping[Place, AxisTable]) -> bool:
    """Whether two tables have equal placements, ignoring which tactic made them."""

    def bare(claims: list[Claim | None]) -> list[tuple[int, Factor] | None]:
        return [None if claim is None else claim[:2] for claim in claims]

    return left.keys() == right.keys() and all(
        bare(left[a].nodes) == bare(right[a].nodes) and bare(left[a].values) == bare(right[a].values) for a in left
    )
