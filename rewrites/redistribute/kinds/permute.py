"""Permute: each device sends its whole part to one other device. [a*64] --> [b*64], or [a*b*8] --> [b*a*8]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, cast

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.layouts import Layout
from ....dialects.ranges.algebra import Place
from ..steps import Bytes, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(Step):
    """Each device takes over the part of another device: axes change places, or are replaced by others."""

    kind: ClassVar[str] = "permute"
    rank = 3
    terms = ("before", "after")

    @classmethod
    def of(cls, *args: object) -> Permute:
        a, b = cast(tuple[tuple[Place, ...], tuple[Place, ...]], args)
        return cls(axes=tuple(dict.fromkeys(a + b)))

    @classmethod
    def received(cls, larger: int, group: int) -> Bytes:
        return larger

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return [spmd.PermuteOp.make(x, self.axes, pairs=spmd.PairsAttr(self.pairs()))]

    def fits(self) -> bool:
        """Whether each device's part after the step is the part that some device has before it."""
        others = {factor.axis for _, factor in {*self.before.factors} ^ {*self.after.factors}}
        if not others <= {*self.axes} or _local(self.before) != _local(self.after):
            return False
        have, want = (sorted(_piece(layout, at) for at in self.devices()) for layout in (self.before, self.after))
        return have == want

    def devices(self) -> list[dict[Place, int]]:
        """The coordinates of the devices along the axes, the last axis fastest."""
        return [dict(zip(self.axes, at, strict=True)) for at in product(*(range(axis.size) for axis in self.axes))]

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The (sender, receiver) pairs, with devices numbered along the axes, the last one fastest.

        Each device sends to one and receives from one; where several hold the same piece, one that already has what it
        wants keeps it.
        """
        devices = self.devices()
        have = [_piece(self.before, at) for at in devices]
        want = [_piece(self.after, at) for at in devices]
        free: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for device, piece in enumerate(have):
            if piece != want[device]:
                free.setdefault(piece, []).append(device)
        sources = [device if have[device] == piece else free[piece].pop(0) for device, piece in enumerate(want)]
        return tuple((source, device) for device, source in enumerate(sources))


def _piece(layout: Layout, at: Mapping[Place, int]) -> tuple[tuple[int, int], ...]:
    """The first element of a device's part in each dim. It identifies the part among those that are exchanged."""
    begins: dict[int, int] = {}
    for dim, factor in layout.factors:
        if factor.axis in at:
            begins[dim] = begins.get(dim, 0) + at[factor.axis] * factor.stride
    return tuple(sorted(begins.items()))


def _local(layout: Layout) -> list[list[tuple[int, int]]]:
    """For each dim, the distances at which a device's elements lie, and how many there are at each."""
    found: list[list[tuple[int, int]]] = []
    for dim, outer in enumerate(layout.padded_shape):
        runs = list[tuple[int, int]]()
        for factor in layout.at(dim):
            runs.append((factor.span, outer // factor.span))
            outer = factor.stride
        found.append([each for each in (*runs, (1, outer)) if each[1] > 1])
    return found
