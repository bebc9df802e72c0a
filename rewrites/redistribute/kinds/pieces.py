"""Pieces: each device gets the elements that it lacks from devices that hold them. One step leads from any layout to any other.

[2*a*3] --> [3*a*2], of 12 rows: a=0 has 0 1 2, 6 7 8 and lacks 4 5, 9; a=1 has 3 4 5, 9 10 11 and lacks 2, 6 7: 3 rows each

Rows that move together are a unit: on each dim, as many as divide the strides of both layouts. Pieces move by permutes, whose
bytes add up to the most that a device lacks, or has to send. If every device has as much for every other one, they move by
one all_to_all. No way receives fewer bytes than a device lacks, so this one is the best where no device has more to send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count, product
from math import gcd, prod
from operator import lt
from typing import ClassVar, Self, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.layouts import Layout
from ....dialects.ranges.algebra import Place, major_to_minor
from ....dialects.ranges.factor import Factor
from ...emit import Sink, type_at
from ..permute_rounds import Pair, busiest, rounds
from ..steps import DimPart
from .exchange import Along, Exchange

Ids: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
"""Sorted numbers of units."""

# Limits of an exchange of pieces: how many devices take part, how many others one exchanges with, how many units are listed.
DEVICES, OTHERS, UNITS = 64, 16, 1 << 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces(Exchange):
    """Exchanges pieces by permutes."""

    kind: ClassVar[str] = "permute"
    trade: Trade

    @staticmethod
    def between(before: Layout, after: Layout, itemsize: int) -> Pieces | None:
        """The step between two layouts without pending folds or halos; None if it would take too many pieces."""
        if (trade := trade_of(before, after)) is None:
            return None
        local = before.local_shape
        unit = itemsize * prod(trade.blocks.get(dim, size) for dim, size in enumerate(local))
        made = (Dealt if trade.is_dealt else Pieces)(axes=trade.axes, before=before, after=after, trade=trade, unit=unit)
        return made.receiving([units * trade.others for units, _ in trade.rounds])

    def renamed(self, axes: tuple[Place, ...], parts: Sequence[DimPart]) -> Self:
        return replace(self, axes=axes, trade=self.trade.renamed(axes, parts))

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        ops: list[Operation] = []
        _Units(self, ops).moved(x)
        return ops

    def __str__(self) -> str:
        return f"pieces {self.over}: {self.before} to {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealt(Pieces):
    """Exchanges pieces by one all_to_all, because every device has equally much for every other device."""

    kind: ClassVar[str] = "all_to_all"


class Trade:
    """Who sends what in a group of devices. `have` and `want` list the units of each device in local order.

    `inside` are those of `want` that are no padding.
    """

    def __init__(
        self, axes: tuple[Place, ...], blocks: dict[int, int], have: list[Ids], want: list[Ids], inside: list[Ids]
    ) -> None:
        self.axes, self.blocks, self.have, self.want = axes, blocks, have, want
        self.pieces = _assigned(have, [np.setdiff1d(wanted, own) for own, wanted in zip(have, inside, strict=True)])
        lengths, others = {len(ids) for ids in self.pieces.values()}, len(have) - 1
        self.is_dealt = others > 1 and len(lengths) == 1 and len(self.pieces) == others * (others + 1)

    def renamed(self, axes: tuple[Place, ...], parts: Sequence[DimPart]) -> Trade:
        """The same trade along other axes, with the dims renumbered."""
        other = copy(self)
        other.axes, other.blocks = axes, {parts[dim].dim: block * parts[dim].rows for dim, block in self.blocks.items()}
        return other

    @cached_property
    def rounds(self) -> list[tuple[int, dict[Pair, Ids]]]:
        """The collectives: the number of units that each moves, and the units that each pair of devices exchanges."""
        if self.is_dealt:
            return [(len(next(iter(self.pieces.values()))), self.pieces)]
        left, found = dict(self.pieces), list[tuple[int, dict[Pair, Ids]]]()
        for units, pairs in rounds({pair: len(ids) for pair, ids in self.pieces.items()}):
            found.append((units, {pair: left[pair][:count] for pair, count in pairs}))
            left |= {pair: left[pair][count:] for pair, count in pairs}
        return found

    @property
    def is_small(self) -> bool:
        """Whether the trade takes few collectives."""
        return self.is_dealt or (busiest(dict.fromkeys(self.pieces, 1)) <= OTHERS and len(self.rounds) <= OTHERS)

    @property
    def others(self) -> int:
        """The number of devices that a device receives from in one collective."""
        return len(self.have) - 1 if self.is_dealt else 1

    def sent(self, units: int, pieces: Mapping[Pair, Ids]) -> list[list[int]]:
        """The local numbers of the units that each device sends in a collective; in an all_to_all, for each receiver in turn.

        All devices send equally many units; one that has fewer to send fills up with others.
        """
        found = np.zeros((len(self.have), units * (len(self.have) if self.is_dealt else 1)), np.int64)
        for (sender, receiver), ids in pieces.items():
            first = receiver * units if self.is_dealt else 0
            found[sender, first : first + len(ids)] = np.searchsorted(self.have[sender], ids)
        return found.tolist()

    def joined(self) -> list[list[int]]:
        """For each device, the numbers of its new units in the array of its old units followed by the received ones."""
        at, first = [dict(zip(have.tolist(), count())) for have in self.have], len(self.have[0])
        for units, pieces in self.rounds:
            for (sender, receiver), ids in pieces.items():
                at[receiver].update(zip(ids.tolist(), count(first + (sender * units if self.is_dealt else 0))))
            first += units
        return [[numbers.get(unit, 0) for unit in want.tolist()] for numbers, want in zip(at, self.want, strict=True)]


@lru_cache(maxsize=1 << 12)
def trade_of(before: Layout, after: Layout) -> Trade | None:
    """Computes what devices exchange between two layouts; None if it would take too many pieces."""
    shape, lengths = before.global_shape, [layout.padded_shape for layout in (before, after)]
    dims = [dim for dim in range(len(shape)) if before.dims[dim] is not after.dims[dim]]
    here, there = ({dim: layout.at(dim) for dim in dims} for layout in (before, after))
    # What is padded on one side alone may lie on no axis.
    blocks = {dim: gcd(*(factor.stride for factor in here[dim] + there[dim])) or 1 for dim in dims}
    # Along an axis that stays in its place, each device exchanges the same units with devices of its own coordinate.
    even = [dim for dim in dims if {each[dim] for each in lengths} == {shape[dim]}]
    staying = {factor.axis for dim in even for factor in here[dim] if factor in there[dim]}
    moving = major_to_minor(f.axis for dim in dims for f in here[dim] + there[dim] if f.axis not in staying)
    counts = {dim: -(-max(each[dim] for each in lengths) // blocks[dim]) for dim in dims}
    count, local = prod(axis.size for axis in moving), [layout.local_shape for layout in (before, after)]
    listed = count * sum(prod(-(-each[dim] // block) for dim, block in blocks.items()) for each in local)
    if count > DEVICES or listed > UNITS:
        return None

    def held(device: Mapping[Place, int], factors: Mapping[int, list[Factor]], length: Sequence[int]) -> Ids:
        """The units of a device, in local order."""
        found = np.zeros(1, np.int64)
        for dim, block in blocks.items():
            at = np.arange(-(-length[dim] // block))
            for factor in factors[dim]:
                at = at[at * block // factor.stride % factor.size == device.get(factor.axis, 0)]
            found = (found[:, None] * counts[dim] + at).reshape(-1)
        return found

    devices = [dict(zip(moving, at, strict=True)) for at in product(*(range(axis.size) for axis in moving))]
    ends = (here, lengths[0]), (there, lengths[1]), (there, shape)
    have, want, inside = ([held(device, *end) for device in devices] for end in ends)
    trade = Trade(moving, blocks, have, want, inside)
    return trade if trade.is_small else None


def _assigned(have: list[Ids], lack: list[Ids]) -> dict[Pair, Ids]:
    """Decides who sends the units that each device lacks. Devices with the same units share the load evenly.

    A device first asks the holder with its own number in the group of holders. If that one has no room left, the others share
    the rest.
    """
    alike: dict[bytes, list[int]] = {}
    for device, units in enumerate(have):
        alike.setdefault(units.tobytes(), []).append(device)
    number = {device: at for group in alike.values() for at, device in enumerate(group)}
    wishes = {
        tuple(group): [
            (to, found) for to, ids in enumerate(lack) if len(found := np.intersect1d(ids, have[group[0]], assume_unique=True))
        ]
        for group in alike.values()
    }
    fair = (-(-sum(len(ids) for _, ids in each) // len(group)) for group, each in wishes.items())
    most, load = max([*map(len, lack), *fair]), Counter[int]()
    pieces: dict[Pair, Ids] = {}

    def give(sender: int, to: int, ids: Ids) -> Ids:
        """Gives as many units as the sender has room for, and returns the rest."""
        room = most - load[sender]
        pieces[sender, to] = ids[:room]
        load[sender] += min(room, len(ids))
        return ids[room:]

    for group, each in wishes.items():
        late: list[tuple[int, Ids]] = []
        for to, ids in each:
            if len(ids) > most - load[own := group[number[to]]]:
                late.append((to, ids))
            else:
                give(own, to, ids)
        for to, ids in sorted(late, key=lambda wish: -len(wish[1])):
            while len(ids):
                ids = give(min(group, key=lambda device: (load[device] + len(ids) > most, load[device])), to, ids)
    return pieces


class _Units(Along):
    """Builds the ops of an exchange: local arrays become arrays of units, which are picked, exchanged and joined."""

    def __init__(self, step: Pieces, into: Sink) -> None:
        self.step, self.trade, self.blocks = step, step.trade, step.trade.blocks
        super().__init__(step.axes, next(iter(self.blocks)) if len(self.blocks) == 1 else 0, into)

    def moved(self, x: SSAValue) -> None:
        """Builds all ops of the step. The last one returns the new local array."""
        before, after = self.step.before.local_shape, self.step.after.local_shape
        x = self.apart(self.resized(x, self.even(before)))
        x = self.concatenated([x, *(self.exchanged(x, *each) for each in self.trade.rounds)])
        self.resized(self.together(self.picked(x, self.trade.joined(), self.dim), self.even(after)), after)

    def exchanged(self, x: SSAValue, units: int, pieces: Mapping[Pair, Ids]) -> SSAValue:
        """Builds one collective, and returns what arrives."""
        sent = self.picked(x, self.trade.sent(units, pieces), self.dim)
        if not self.trade.is_dealt:
            return self.permuted(sent, sorted(pieces))
        blocks = {"split": self.dim, "split_block": units, "concat": self.dim, "concat_block": units}
        return self.add(spmd.AllToAllOp.make(sent, self.axes, **blocks))

    def even(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape rounded up to whole units."""
        return tuple(-(-size // self.blocks.get(dim, 1)) * self.blocks.get(dim, 1) for dim, size in enumerate(shape))

    def split(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape that separates units from the elements in them, and the order of dims that puts units first."""
        parts = [
            (size // self.blocks[dim], self.blocks[dim]) if dim in self.blocks else (size,) for dim, size in enumerate(shape)
        ]
        firsts = [sum(map(len, parts[:dim])) for dim in self.blocks] if len(self.blocks) > 1 else []
        apart = tuple(size for part in parts for size in part)
        return apart, (*firsts, *(at for at in range(len(apart)) if at not in firsts))

    def apart(self, x: SSAValue) -> SSAValue:
        """Makes units the first dim: `[12, 8] -> [3, 2, 4, 4] -> [6, 4, 4]`, with units of 4 by 4."""
        shape, order = self.split(type_at(x).shape)
        x = self.transpose(self.reshape(x, shape), order)
        merged, count = type_at(x).shape, max(1, len(self.blocks))
        return self.reshape(x, (prod(merged[:count]), *merged[count:]))

    def together(self, x: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        """The inverse of `apart`."""
        split, order = self.split(shape)
        x = self.reshape(x, tuple(split[at] for at in order))
        return self.reshape(self.transpose(x, tuple(order.index(at) for at in range(len(order)))), shape)

    def resized(self, x: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        """Pads or cuts the array at the end of its dims, to this shape."""
        now = type_at(x).shape
        if now == shape:
            return x
        return (self.cut if any(map(lt, shape, now)) else self.pad)(x, shape)
