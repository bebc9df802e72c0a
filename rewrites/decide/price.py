"""What a step costs: the one price by which ways to place some ops, and to move values between them, are compared.

A step takes the seconds in which a device receives its bytes, and computes its flops, in each trip of the loops around it: on
the chip of the mesh, whose slow links take longer. Of equal times the one with fewer collectives is better, then the one that
holds less.

    v5e, 1 MB and 10 GFLOP              -->   22 us + 51 us
    v5e, 1 MB over slow links           -->   160 us
    H100, 1 MB and 10 GFLOP             -->   2 us + 10 us
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple, Self

from ...dialects.definitions.flops import flops
from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...dialects.params import NO_PARAMS, ParamsAttr
from ...dialects.ranges.algebra import Place
from ..program.program import Node, ValueId
from ..redistribute.search import Path
from ..redistribute.slow_links import folded_apart
from ..redistribute.steps import Bytes
from .placements import OpPlacement, Placements, place_op

START = 0.73e-6
"""The seconds that a collective takes to start, on any chip."""


class Price(NamedTuple):
    """Seconds, the number of collectives, the bytes that are held (what ops make, as it lies on one device), those received."""

    seconds: float
    collectives: int
    held: int = 0
    bytes: Bytes = 0

    @classmethod
    def of(cls, on: Mesh, ways: Iterable[tuple[Path, int]], ops: Iterable[tuple[int, int]] = (), held: int = 0) -> Self:
        """The price on a mesh of paths, and of the flops of ops, each taken so many times."""
        received, slow, collectives = 0, 0, 0
        for way, times in ways:
            received += way.bytes * times
            collectives += way.collectives * times
            if on.slow:
                slow += slow_bytes(on, way) * times
        computed = sum(each * times for each, times in ops)
        # From the sums, so that as many bytes take as long.
        return cls(seconds(on, received, slow, computed), collectives, held, received)

    @classmethod
    def sum(cls, every: Iterable[Price]) -> Self:
        """The price of several steps."""
        found = [*every]
        return cls(*map(sum, zip(*found, strict=True))) if found else cls(0, 0)

    @property
    def with_starts(self) -> float:
        """The seconds, with those in which the collectives start."""
        return self.seconds + START * self.collectives

    def pays(self, before: Price, departs: bool = True) -> bool:
        """Whether this saves enough time to pay for the starts of the collectives that it adds.

        `departs`: ops leave where the tactics put them, which has to save what one start takes at least.
        """
        return before.seconds - self.seconds > START * max(int(departs), self.collectives - before.collectives)

    @property
    def may_fall(self) -> bool:
        """Whether this takes so much time that something else could pay: more than a start."""
        return self.seconds > START


def seconds(on: Mesh, received: Bytes, slow: Bytes = 0, computed: int = 0) -> float:
    """The time in which a device of a mesh receives bytes, so many of them over slow links, and computes flops."""
    chip, crossing = on.chip, 0.0
    if slow:
        received, crossing = received - slow, float(slow) / chip.slow_bytes_per_second
    return float(received) / chip.bytes_per_second + crossing + computed / chip.flops_per_second


def slow_bytes(on: Mesh, way: Path) -> Bytes:
    """The bytes of a path that cross slow links of a mesh."""
    return sum(step.bytes * step.trips for step in way.steps if is_slow(on, step.axes))


def is_slow(on: Mesh, axes: Iterable[Place]) -> bool:
    """Whether data sent over these axes crosses slow links of a mesh, or of one whose axes they are parts of."""
    slow = _slow(on)
    return any(axis in slow or axis.axis in slow for axis in axes)


@cache
def _slow(on: Mesh) -> frozenset[Place]:
    return frozenset(place for name, place in zip(on, on.places, strict=True) if name in on.slow)


def way_of(placements: Placements, value: ValueId, source: Layout, target: Layout) -> Path:
    """The path by which a value changes its layout: of the fewest bytes, unless folds apart from those over slow links pay."""
    plain, on = placements.way(value, source, target), placements.program.mesh
    return _over_links(on, plain, source, target, placements.width(value)) if on.slow and source.pending else plain


@lru_cache(maxsize=1 << 14)
def _over_links(on: Mesh, plain: Path, source: Layout, target: Layout, itemsize: int) -> Path:
    apart = folded_apart(source, target, itemsize, _slow_place(on))
    if apart is None or not Price.of(on, [(apart, 1)]).pays(Price.of(on, [(plain, 1)]), departs=False):
        return plain
    return apart


@cache
def _slow_place(on: Mesh) -> Callable[[Place], bool]:
    return lambda axis: is_slow(on, [axis])


def charged(placements: Placements, node: Node, placed: OpPlacement) -> int:
    """The flops of one device in one run of an op, divided only over the axes on which a claim has reached it.

    dot %h {data*4}, %w: no tactic places it on `model`   -->   placed there, it would count as on `data` alone
    """
    if placed.placement and any(not placements.reaches(node.number, factor.axis) for _, factor in placed.placement):
        divided = (each for each in placed.placement if placements.reaches(node.number, each[1].axis))
        placed = place_op(node.signature, tuple(divided))
    return computed(node, placed)


def computed(node: Node, placed: OpPlacement) -> int:
    """The flops of one device in one run of an op. Where they are unknown, each element that it reads counts once."""
    known = known_flops(node, placed)
    return placed.trips * sum(prod(layout.local_shape) for layout in placed.wanted) if known is None else known


def known_flops(node: Node, placed: OpPlacement) -> int | None:
    """The flops of one device in one run of an op that is placed so; None if they are unknown."""
    # The parameters of a border are those of its loop or branch.
    return flops_as_placed(node.op_name, NO_PARAMS if node.is_border else node.params, placed)


@lru_cache(maxsize=1 << 14)
def flops_as_placed(name: str, params: ParamsAttr, placed: OpPlacement) -> int | None:
    """The flops of one device in one run of an op of this name; None if they are unknown."""
    ins, outs = (tuple(layout.local_shape for layout in side) for side in (placed.wanted, placed.produced))
    known = flops(name, params, ins, outs)
    return None if known is None else known * placed.trips
