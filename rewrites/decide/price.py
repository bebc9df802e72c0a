"""What a step costs: the one price by which ways to place some ops, and to move values between them, are compared.

A step takes the seconds in which a device receives its bytes, and computes its flops, in each trip of the loops around it. Of
equal times the one with fewer collectives is better, then the one that holds less. All links count as fast ones in decisions;
the price of a whole plan (`compiler/cost/costs.py`) weighs slow ones too.

    1 MB and 10 GFLOP   -->   22 us + 51 us
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import NamedTuple, Self, cast

from ...dialects.definitions.flops import flops
from ...dialects.params import NO_PARAMS, ParamsAttr
from ..program.program import Node
from ..redistribute.search import Path
from ..redistribute.steps import Bytes
from .placements import OpPlacement

FLOPS_PER_SECOND = 197e12
BYTES_PER_SECOND = 45e9
"""The speed of one TPU v5e: flops a second, and bytes a second over one link."""

SLOW_BYTES_PER_SECOND = 25e9 / 4
"""The bytes a second that each of the four chips of a host receives over the network between pods, which they share."""

START = 0.73e-6
"""The seconds that a collective takes to start."""


class Price(NamedTuple):
    """Seconds, the number of collectives, the bytes that are held (what ops make, as it lies on one device), those received."""

    seconds: float
    collectives: int
    held: int = 0
    bytes: Bytes = 0

    @classmethod
    def of(cls, ways: Iterable[tuple[Path, int]], ops: Iterable[tuple[int, int]] = (), held: int = 0) -> Self:
        """The price of paths, and of the flops of ops, each taken so many times."""
        every = [*ways]
        # From the sums, so that as many bytes take as long.
        received = sum(way.bytes * times for way, times in every)
        computed = sum(each * times for each, times in ops)
        return cls(seconds(received, computed), sum(way.collectives * times for way, times in every), held, received)

    def pays(self, before: Price) -> bool:
        """Whether this saves enough time to pay for the starts of the collectives that it adds, and for one at least."""
        return before.seconds - self.seconds > START * max(1, self.collectives - before.collectives)


def seconds(received: Bytes, computed: int = 0, slow: Bytes = 0) -> float:
    """The time in which a device receives bytes over fast and slow links, and computes flops."""
    return float(received) / BYTES_PER_SECOND + float(slow) / SLOW_BYTES_PER_SECOND + computed / FLOPS_PER_SECOND


def work(flops: int, made: int = 0) -> Price:
    """The price of flops, and of so much that they make."""
    return Price.of((), [(flops, 1)], made)


def computed(node: Node, placed: OpPlacement) -> int:
    """The flops of one device in one run of an op. Where they are unknown, each element that it reads counts once."""
    known = known_flops(node, placed)
    return sum(prod(layout.local_shape) for layout in placed.wanted) if known is None else known


def known_flops(node: Node, placed: OpPlacement) -> int | None:
    """The flops of one device in one run of an op that is placed so; None if they are unknown."""
    # The parameters of a border are those of its loop or branch.
    params = NO_PARAMS if node.is_border else cast(ParamsAttr, node.op.properties.get("params", NO_PARAMS))
    return _flops(node.op_name, params, placed)


@lru_cache(maxsize=1 << 14)
def _flops(name: str, params: ParamsAttr, placed: OpPlacement) -> int | None:
    ins, outs = (tuple(layout.local_shape for layout in side) for side in (placed.wanted, placed.produced))
    return flops(name, params, ins, outs)
