"""Every way to run an op of a small program, from the definitions: where it is placed on each axis, and which sums it carries.

    dot of [m, k] and [k, n] on one axis   -->   whole; along m, n or k; or a sum over the axis waits in one of its operands

No proposal of `rewrites/decide` is asked. What an op wants and makes under a placement, whether the laws allow it, and in which
operands it is linear are read off its definition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import prod

from oracle_moves import moved, weight

from partita.dialects.definitions.flops import flops
from partita.dialects.ground.dtypes import itemsize
from partita.dialects.layouts import Layout, Pending
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import Place, major_to_minor
from partita.dialects.ranges.factor import Factor
from partita.rewrites.decide import price
from partita.rewrites.decide.linearity import linear_in
from partita.rewrites.decide.placements import OpPlacement, Placement, Placements, Unreduced, place_op
from partita.rewrites.decide.table import misfit
from partita.rewrites.program.program import Node, Program, Signature
from partita.rewrites.redistribute.search import Path, path

FEW = 2
"""The flops per element of its largest operand that an op may take so that every device may do all of its work."""

MONOID = "add"
"""The only monoid that is linear: sums of it may wait."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run an op: the layouts that it wants and makes, with the sums that wait in them, and its costs."""

    placed: OpPlacement
    sums: Unreduced
    """The sums that wait in its operands."""
    wanted: tuple[Layout, ...]
    made: tuple[Layout, ...]
    moves: float
    """What it costs that the op itself exchanges something."""
    work: float
    """What it costs to compute it."""

    @property
    def cost(self) -> float:
        return self.moves + self.work

    @property
    def axes(self) -> set[Place]:
        """The axes on which it is placed."""
        return {factor.axis for _, factor in self.placed.placement}

    def __str__(self) -> str:
        where = ", ".join(f"{factor.place}: {'ijklmnopq'[index]}*{factor.stride}" for index, factor in self.placed.placement)
        return (where or "whole") + "".join(f", carries +{each.axis}" for each in self.sums)


def ways(placements: Placements, node: Node, mesh: Mesh) -> list[Way]:
    """All ways to run a node, of those that want and make the same the cheapest."""
    found: dict[tuple[tuple[Layout, ...], tuple[Layout, ...]], Way] = {}
    for placement in spread(node.signature, mesh):
        placed = place_op(node.signature, placement)
        for sums, at in waiting(placements.program, node, placed, mesh):
            way = way_of(placements, node, placed, sums, at, mesh)
            found.setdefault((way.wanted, way.made), way)
    return list(found.values())


def way_of(placements: Placements, node: Node, placed: OpPlacement, sums: Unreduced, at: frozenset[int], mesh: Mesh) -> Way:
    """The op under a placement, with sums that wait in the operands `at`."""
    wanted = tuple(layout.with_pending(sums if n in at else ()) for n, layout in enumerate(placed.wanted))
    moves, made = sum(own_moves(placements.program, node, placed)), list[Layout]()
    for value, layout, pend in zip(node.results, placed.produced, placed.pending, strict=True):
        if any(each.scans or each.is_gathered for each in pend):
            moves += moved(layout.with_pending(pend), layout, itemsize(placements.program.types[value].dtype), mesh.size)
            pend = ()
        made.append(layout.with_pending((*pend, *sums)))
    return Way(placed, sums, wanted, tuple(made), moves, running(placements, node, placed))


def spread(signature: Signature, mesh: Mesh) -> Iterator[Placement]:
    """Every axis on every index, or on none. Several axes on one index are nested either way."""
    axes = major_to_minor(mesh.places)
    for chosen in product(*([None, *spots(signature, axis, mesh)] for axis in axes)):
        placement = tuple(each for each in chosen if each is not None)
        indices = {index for index, _ in placement}
        rivals = any(indices & signature.rivals.get(index, set()) for index in indices)
        own = ([factor for at, factor in placement if at == index] for index in indices)
        if not rivals and all(misfit(signature, at, each) is None for at, each in zip(indices, own, strict=True)):
            yield placement


def spots(signature: Signature, axis: Place, mesh: Mesh) -> Iterator[tuple[int, Factor]]:
    """Where an axis may be: on each index, in blocks of its own, or of those that any of the other axes have within."""
    others = [each.size for each in mesh.places if each is not axis]
    groups = {axis.size * prod(some) for some in chain.from_iterable(combinations(others, n) for n in range(len(others) + 1))}
    for index, info in enumerate(signature.indices):
        yield from ((index, Factor(axis, info.extent // each)) for each in sorted(groups) if info.extent % each == 0)


def waiting(program: Program, node: Node, placed: OpPlacement, mesh: Mesh) -> Iterator[tuple[Unreduced, frozenset[int]]]:
    """The sums that may wait in operands of an op, and in which: none, or any on axes where it is not placed."""
    yield (), frozenset()
    used = {factor.axis for _, factor in placed.placement}
    free = [axis for axis in mesh.places if axis not in used and axis.size > 1]
    if not free or any(each.monoid != MONOID or each.scans for pend in placed.pending for each in pend):
        return
    operands = linear_operands(program, node)
    for n in range(1, len(free) + 1):
        yield from product((tuple(Pending(MONOID, axis) for axis in some) for some in combinations(free, n)), operands)


def linear_operands(program: Program, node: Node) -> list[frozenset[int]]:
    """The sets of operands in which the op is linear together."""
    if len(node.results) != 1:
        return []
    dtypes = [program.types[value].dtype for value in (*node.operands, *node.results)]
    definition, zeros = node.signature.definition, program.zeros(node)
    positions = range(len(node.operands))
    some = map(frozenset, chain.from_iterable(combinations(positions, n) for n in range(1, len(positions) + 1)))
    return [at for at in some if all(linear_in(definition, at, zeros, (dtypes[each], dtypes[-1])) for each in at)]


def own_moves(program: Program, node: Node, placed: OpPlacement) -> Iterator[float]:
    """What an op itself exchanges: a merge of the blocks that it sorts, or what it selects of each block."""
    if placed.merged is not None:
        yield weight(Path((placed.merged,), placed.merged.bytes))
    if placed.selected is not None:
        for value in (node.operands[0], *filter(program.is_read, node.results[-1:])):
            width = itemsize(program.types[value].dtype)
            yield weight(path(placed.selected.apart, placed.selected.gathered, width))


def divides_its_work(program: Program, node: Node) -> bool:
    """Whether an op stays on the axes on which claims place it: it computes much, or looks elements up in an argument."""
    if node.operands and any(index.reads for index in node.signature.indices):
        return program.parameter[node.operands[0]]
    ins, outs = (tuple(map(program.shape, values)) for values in (node.operands, node.results))
    work = flops(node.op_name, node.params, ins, outs)
    return work is None or work > FEW * max(map(prod, ins), default=0)


def running(placements: Placements, node: Node, placed: OpPlacement) -> float:
    """What it costs to compute an op, in bytes that take as long."""
    on = placements.program.mesh
    return price.seconds(on, 0, computed=price.charged(placements, node, placed)) * on.chip.bytes_per_second
