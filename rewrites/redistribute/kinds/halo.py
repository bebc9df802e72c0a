"""Halo: each device gets the window of a dim that it is to hold, from the devices whose blocks overlap the window.

[data*64] --> [win<64,66,1,1>(data) of 512]: the last row of the block before, its own block, the first row after it

What moves follows from the intersections of two families of intervals: those that the devices hold, and those that they are
to hold. A device keeps its own piece, and gets one from each device that has other rows of its window. These pieces move by
permutes. One permute moves pieces of several distances, and of several arrays, if no device sends or receives two of them.
Rows outside of the range are zeros.

    roll(x, 1) on data=3: the last row of device 2 to 0, for one part, those of 0 and 1 to 1 and 2, for the other: one permute
    x[::-1] on data=4: windows that run backwards, win<-64,64,1,-192>(data) of 256: devices 0 and 3, 1 and 2 change blocks
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import ClassVar, NamedTuple, Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.layouts import Layout
from ....dialects.ranges.algebra import MeshAxis
from ....dialects.ranges.factor import Factor, is_padded, joined
from ...emit import IDS, Sink, type_at
from ..steps import DimPart, Step, devices
from .exchange import Along, Exchange


class Hop(NamedTuple):
    """Pieces that one permute can move together, with the (sender, receiver) pairs; `moves` is false for the receiver's own
    rows.

    Where blocks and windows have one stride, or run against each other, a piece is rows `[begin, end)` of the receiver's
    window, and the sender's rows are `by` less. Elsewhere, the sender is `by` places after the receiver. Pieces then begin in
    different places, so each device looks its own up in a table, and `rows` is the length of the longest.
    """

    moves: bool
    by: int
    begin: int
    end: int
    rows: int
    pairs: tuple[tuple[int, int], ...]

    @property
    def senders(self) -> tuple[int, ...]:
        return tuple(sender for sender, _ in self.pairs)

    @property
    def receivers(self) -> tuple[int, ...]:
        return tuple(receiver for _, receiver in self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Halo(Exchange):
    """Moves the windows of one dim. `units` counts rows; it is empty if the rows move in the permutes of another array."""

    kind: ClassVar[str] = "permute"
    dim: int

    @staticmethod
    def between(before: Layout, after: Layout, dim: int, itemsize: int) -> Halo:
        """The step between layouts that differ in one dim. After it, the dim is on axes; before it, on these or none."""
        row = itemsize * prod(size for at, size in enumerate(before.local_shape) if at != dim)
        alone = Halo(before=before, after=after, dim=dim, unit=row)
        return replace(alone, axes=alone.want.axes).sending([alone])

    def sending(self, steps: Sequence[Halo]) -> Halo:
        """Returns the step as the one whose permutes move the pieces of all these steps."""
        return self.receiving([max(hop.rows for _, hop in each) for each in rounds(tuple(step.hops for step in steps))])

    @property
    def extent(self) -> int:
        return self.before.global_shape[self.dim]

    @property
    def have(self) -> Factor | None:
        """The blocks or windows that devices hold before the step; None if each holds the whole dim."""
        return joined(self.extent, self.before.at(self.dim))

    @property
    def want(self) -> Factor:
        want = joined(self.extent, self.after.at(self.dim))
        assert want is not None, "windows are of all places together"
        return want

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The pieces that the step moves between devices."""
        return tuple(hop for hop in pieces(self.have, self.want, self.extent) if hop.moves)

    def renamed(self, axes: tuple[MeshAxis, ...], parts: Sequence[DimPart]) -> Self:
        return replace(self, axes=axes, dim=parts[self.dim].dim)

    @property
    def sharing(self) -> Hashable:
        """Halos share permutes if they have the same axes, dim and shape of a row."""
        shape = self.before.local_shape
        return (self.kind, self.axes, self.dim, shape[: self.dim] + shape[self.dim + 1 :]) if self.units else None

    @classmethod
    def together(cls, steps: Sequence[Step]) -> Sequence[Step] | None:
        halos = [step for step in steps if isinstance(step, Halo)]
        first, *rest = halos
        one = first.sending(halos)
        is_less = one.bytes < sum(step.bytes for step in halos)
        return [one, *(each.receiving(()) for each in rest)] if is_less else None

    @classmethod
    def exchange(cls, steps: Sequence[Step], values: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
        ops: list[Operation] = []
        halos = [step for step in steps if isinstance(step, Halo)]
        here = _Here(halos[0], values[0], ops)
        arrays = [_Window(step, x, here) for step, x in zip(halos, values, strict=True)]
        for permute in rounds(tuple(step.hops for step in halos)):
            alike: dict[tuple[int, Hop | None], list[Hop]] = {}
            for at, hop in permute:
                alike.setdefault((at, hop if arrays[at].is_alike else None), []).append(hop)
            parts = [(arrays[at], _merged(hops)) for (at, _), hops in alike.items()]
            for (array, hop), piece in zip(parts, here.sent([(hop, array.piece(hop)) for array, hop in parts]), strict=True):
                array.parts.append((hop, piece))
        return ops, [array.made() for array in arrays]

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return self.exchange([self], [x])[0]

    def __str__(self) -> str:
        shared = "" if self.units or not self.hops else ", in the permutes of another array"
        return f"halo {self.over} {self.dim}: {self.have or 'whole'} to {self.want}{shared}"


@lru_cache(maxsize=1 << 12)
def pieces(have: Factor | None, want: Factor, extent: int) -> tuple[Hop, ...]:
    """Lists the pieces. A device uses its own rows where it can, and takes all others from the devices that own them."""
    if have is None:
        return ()
    # What a device owns of a tiling that begins elsewhere ends before its block does.
    short, alike = max(0, -have.after), are_alike(have, want)
    found: dict[tuple[int, bool, int], list[tuple[int, int, int, int]]] = {}
    in_turn = have.is_in_turn(extent)
    for i in range(want.size):
        begin, end = want.start(i), min(want.start(i) + want.width, extent)
        if alike:
            begin = max(begin, 0)
        for turn, j in _near(have, extent, begin, end):
            own, its = ((turn + have.start(device), turn + have.start(device) + have.width) for device in (i, j))
            if i != j and alike and have.stride > 0 and not in_turn:
                first, last = j * have.stride - short, extent if j + 1 == have.size else (j + 1) * have.stride - short
                its = (first, min(last, own[0])) if j < i else (max(first, own[1]), last)
            rows = max(begin, its[0]), min(end, its[1])
            if max(rows[0], 0) < rows[1] and (i == j or rows[0] < own[0] or rows[1] > own[1]):
                # Blocks in turn: a device keeps its own one behind another.
                kept = turn // have.span * have.stride
                by = turn + have.start(j) - kept - want.start(i) if alike else j - i
                found.setdefault((by, i != j, turn), []).append((rows[0] - want.start(i), rows[1] - want.start(i), j, i))
    return tuple(_hop(moves, by, parts, alike) for (by, moves, _), parts in sorted(found.items()))


def _near(have: Factor, extent: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields devices that may hold rows of `[begin, end)`, each with the first row of its round, if blocks are dealt in turn.

    The last one is always among them, because it may have more rows than the others.
    """
    stride, last = have.stride, have.size - 1
    # Where what a device owns and what it holds begin at the earliest and end at the latest, from where its block begins.
    least, most = min(0, -have.before, have.after), stride + have.after
    turns = range(max(0, begin) // have.span, -(-end // have.span)) if have.is_in_turn(extent) else range(1)
    for turn in (number * have.span for number in turns):
        # A device is as many strides away; with a negative stride, the latest rows are on the first devices.
        bounds = begin - turn - most, end - turn - least
        low, high = bounds if stride > 0 else bounds[::-1]
        devices = range(max(0, low // stride + 1), min(last, -(-high // stride) - 1) + 1)
        yield from ((turn, device) for device in devices)
        if last not in devices:
            yield turn, last


def are_alike(have: Factor, want: Factor) -> bool:
    """Whether blocks and windows have the same stride, perhaps with opposite signs."""
    return abs(have.stride) == abs(want.stride)


def _hop(moves: bool, by: int, parts: list[tuple[int, int, int, int]], alike: bool) -> Hop:
    begins, ends, senders, receivers = zip(*parts, strict=True)
    begin, end = min(begins), max(ends)
    rows = end - begin if alike else max(end - begin for begin, end, *_ in parts)
    return Hop(moves, by, begin, end, rows, tuple(zip(senders, receivers, strict=True)))


def _merged(hops: Sequence[Hop]) -> Hop:
    """Merges the pieces of one permute that each device looks up in a table."""
    first, *others = hops
    pairs = sorted(pair for hop in hops for pair in hop.pairs)
    return first._replace(rows=max(hop.rows for hop in hops), pairs=tuple(pairs)) if others else first


@lru_cache(maxsize=1 << 12)
def rounds(hops: tuple[tuple[Hop, ...], ...]) -> tuple[tuple[tuple[int, Hop], ...], ...]:
    """Groups the pieces of several arrays into permutes. Each piece comes with the number of its array.

    ```
    1 -> 0, 2 -> 1   and   3 -> 1, 4 -> 2   and   5 -> 2, 6 -> 3      -->      the first and the third, then the second
    ```
    """
    every = [(at, hop) for at, each in enumerate(hops) for hop in each]
    ways = [_first_fit(every), _first_fit(sorted(every, key=lambda part: -part[1].rows))]
    return min(ways, key=lambda way: (sum(max(hop.rows for _, hop in each) for each in way), len(way)))


def _first_fit(parts: Sequence[tuple[int, Hop]]) -> tuple[tuple[tuple[int, Hop], ...], ...]:
    """Puts each piece into the first permute in which its devices neither send nor receive another piece."""
    found: list[tuple[list[tuple[int, Hop]], set[int], set[int]]] = []
    for part in parts:
        senders, receivers = part[1].senders, part[1].receivers
        fitting = (each for each in found if each[1].isdisjoint(senders) and each[2].isdisjoint(receivers))
        if (first := next(fitting, None)) is None:
            found.append(first := ([], set(), set()))
        first[0].append(part)
        first[1].update(senders)
        first[2].update(receivers)
    return tuple(tuple(each) for each, *_ in found)


class _Here(Along):
    """Builds ops for the device on which they run: its coordinate, what it sends, and what it receives."""

    def __init__(self, step: Halo, like: SSAValue, into: Sink) -> None:
        super().__init__(step.axes, step.dim, into)
        self.like = like
        self.coordinate: SSAValue | None = None
        self.cuts: dict[tuple[SSAValue, int, int], SSAValue] = {}

    def place(self, stride: int, first: int) -> SSAValue:
        """This device's coordinate times `stride`, plus `first`."""
        if not stride:
            return self.emit.number(first, IDS)
        if self.coordinate is None:
            self.coordinate = self.add(spmd.CoordinateOp(self.axes))
        scaled = self.coordinate
        if stride != 1:
            scaled = self.emit.apply("mul", scaled, stride)
        return self.emit.apply("add", scaled, first) if first else scaled

    def listed(self, numbers: Mapping[int, int]) -> SSAValue:
        """The number that a table lists for this device; zero if it lists none."""
        every = [numbers.get(device, 0) for device in range(devices(self.axes))]
        if len(steps := {after - before for before, after in pairwise(every)}) == 1:
            return self.place(steps.pop(), every[0])
        return self.emit.reshape(self.picked(self.emit.iota((max(every) + 1,), 0), [[number] for number in every], 0), ())

    def select(self, devices: Sequence[int], mine: SSAValue, other: SSAValue) -> SSAValue:
        """Selects `mine` on these devices, and `other` on all others."""
        first, last = min(devices), max(devices)
        if last - first < len(devices):
            is_among = self.emit.between(self.place(1, -first), len(devices))
        else:
            is_among = self.emit.equals(self.listed(dict.fromkeys(devices, 1)), 1)
        return self.emit.select(self.emit.spread(is_among, type_at(mine).shape), mine, other)

    def sent(self, parts: Sequence[tuple[Hop, SSAValue]]) -> list[SSAValue]:
        """Moves several pieces by one permute, and returns what arrives of each: zeros on devices that receive none."""
        most = max(self.length(part) for _, part in parts)
        (_, first), *others = parts
        payload = self.lengthened(first, most)
        for hop, part in others:
            if part is not first:
                payload = self.select(hop.senders, self.lengthened(part, most), payload)
        got = self.permuted(payload, sorted(pair for hop, _ in parts for pair in hop.pairs))
        if not others:
            return [got]
        cut = [self.cut(got, 0, self.length(part)) for _, part in parts]
        return [self.select(hop.receivers, x, self.zeros(self.length(x))) for (hop, _), x in zip(parts, cut, strict=True)]

    def lengthened(self, x: SSAValue, size: int) -> SSAValue:
        """Appends zeros to the rows, up to this length."""
        rows = [x, self.zeros(missing := size - self.length(x))]
        return self.concatenated(rows) if missing else x

    def cut(self, x: SSAValue, first: int, size: int) -> SSAValue:
        if first == 0 and size == self.length(x):
            return x
        if (key := (x, first, size)) not in self.cuts:
            self.cuts[key] = self.emit.part(x, self.dim, first, size)
        return self.cuts[key]

    def cut_at(self, x: SSAValue, start: SSAValue, size: int) -> SSAValue:
        return x if size == self.length(x) else self.make("dynamic_slice", [x, *self.starts(start)], size)

    def starts(self, start: SSAValue) -> list[SSAValue]:
        zero = self.emit.number(0, IDS)
        return [start if at == self.dim else zero for at in range(len(type_at(self.like).shape))]

    def zeros(self, size: int) -> SSAValue:
        return self.emit.spread(self.zero(), self.sized(self.like, size))

    def zero(self) -> SSAValue:
        return self.emit.unit("add", type_at(self.like).dtype)


class _Window:
    """Builds the local window of one step from the pieces that a device keeps and receives."""

    def __init__(self, step: Halo, x: SSAValue, here: _Here) -> None:
        self.x, self.here, self.extent = x, here, step.extent
        self.have, self.want = step.have, step.want
        self.parts: list[tuple[Hop, SSAValue]] = []
        """The pieces that have arrived."""

    @property
    def is_alike(self) -> bool:
        """Whether a piece is the same rows of the window on all devices."""
        return self.have is not None and are_alike(self.have, self.want)

    def piece(self, hop: Hop) -> SSAValue:
        """The rows that this device sends, or keeps, for a hop."""
        assert self.have is not None, "only what devices do not have moves"
        if self.is_alike:
            return self.here.cut(self.x, hop.begin - hop.by, hop.rows)
        first = {sender: self.first(self.have, hop, sender, receiver) for sender, receiver in hop.pairs}
        return self.here.cut_at(self.x, self.here.listed(first), hop.rows)

    def first(self, have: Factor, hop: Hop, sender: int, receiver: int) -> int:
        """The first local row of a piece: where the receiver's window begins, or else the sender's first or last rows."""
        return min(max(0, self.want.start(receiver) - have.start(sender)), have.width - hop.rows)

    def made(self) -> SSAValue:
        """The window, built when all pieces have arrived."""
        if (have := self.have) is None:
            return self.of_whole()
        self.parts += [(hop, self.piece(hop)) for hop in pieces(have, self.want, self.extent) if not hop.moves]
        out = self.joined(have) if self.is_alike else self.written(have)
        if not self.want.has_halo or not is_padded(self.extent, [have]):
            return out
        # Behind its end a padded dim may hold anything.
        first = self.here.place(self.want.stride, self.want.start(0))
        return self.here.emit.inside(out, self.here.dim, first, self.extent, self.here.zero())

    def of_whole(self) -> SSAValue:
        """This device's window, cut out of the whole dim."""
        want, here, x = self.want, self.here, self.x
        before, after = max(0, -want.begin), max(0, want.end - self.extent)
        if before or after:
            config = tuple((before, after, 0) if at == here.dim else (0, 0, 0) for at in range(len(type_at(x).shape)))
            x = here.make("pad", [x, here.zero()], before + self.extent + after, padding_config=config)
        return here.cut_at(x, here.place(want.stride, want.start(0) + before), want.width)

    def joined(self, have: Factor) -> SSAValue:
        """Concatenates the pieces, which are the same rows on all devices."""
        parts = sorted(self.parts, key=lambda part: part[0].begin)
        # Where blocks and windows follow each other in one order, all devices keep something, but those at the ends.
        is_forward = have.stride * self.want.stride > 0 and not have.is_in_turn(self.extent)
        some_keep = not is_forward and any(not hop.moves and len(hop.pairs) < self.want.size for hop, _ in parts)
        if some_keep or any(hop.begin < before.end for (before, _), (hop, _) in pairwise(parts)):
            return self.overlaid(parts)
        at, rows = 0, list[SSAValue]()
        for begin, end, part in [*((hop.begin, hop.end, [part]) for hop, part in parts), (self.want.width, 0, ())]:
            rows += [*([self.here.zeros(begin - at)] if begin > at else ()), *part]
            at = end
        return self.here.concatenated(rows)

    def overlaid(self, parts: Sequence[tuple[Hop, SSAValue]]) -> SSAValue:
        """Overlays the pieces on zeros, each on the devices that receive it.

        They overlap if the last device has a longer block: its rows are as far from the last receivers as those of the device
        before it are from others.
        """
        here, width = self.here, self.want.width
        out = here.zeros(width)
        for hop, part in parts:
            rows = [here.cut(out, 0, hop.begin), part, here.cut(out, hop.end, width - hop.end)]
            out = here.select(hop.receivers, here.concatenated([each for each in rows if here.length(each)]), out)
        return out

    def written(self, have: Factor) -> SSAValue:
        """Writes each piece over zeros where its rows belong.

        On devices that receive none, it is written in front of the window.
        """
        want, room = self.want, max((hop.rows for hop, _ in self.parts), default=0)
        out = self.here.zeros(length := room + want.width + room)
        for hop, part in self.parts:
            at = {
                receiver: room + have.start(sender) + self.first(have, hop, sender, receiver) - want.start(receiver)
                for sender, receiver in hop.pairs
            }
            ins = [out, part, *self.here.starts(self.here.listed(at))]
            out = self.here.make("dynamic_update_slice", ins, length)
        return self.here.cut(out, room, want.width)
