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

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from math import prod
from typing import ClassVar, NamedTuple, Self

from xdsl.ir import Operation, SSAValue

from ....dialects import spmd
from ....dialects.layouts import Layout
from ....dialects.ranges.algebra import Place
from ....dialects.ranges.factor import Factor, is_padded, joined
from ...emit import IDS, Sink, type_at
from ..permute_rounds import Pair, ends, shift
from ..steps import DimPart, Path, devices
from .exchange import Along, Exchange


class Piece(NamedTuple):
    """Rows that a device sends to another one, or keeps.

    They are so many from its local row `first` on, and go to row `begin` of the receiver's window and those that follow.
    """

    sender: int
    receiver: int
    first: int
    begin: int
    rows: int

    def earlier(self, by: int) -> Piece:
        """Returns the piece with so many more rows, in front of it."""
        return self._replace(first=self.first - by, begin=self.begin - by, rows=self.rows + by)


class Hop(NamedTuple):
    """Pieces that one permute can move together; `moves` is false for rows that devices keep.

    Where blocks and windows have one stride, or run against each other, the pieces begin at the same rows on all devices.
    Elsewhere, the sender is so many places after the receiver, and each device looks its own rows up in a table. Devices send
    as many rows as are in the longest piece, `rows`. Of several arrays that share permutes, the pieces are of number `array`.
    """

    moves: bool
    is_alike: bool
    rows: int
    pieces: tuple[Piece, ...]
    array: int = 0

    @property
    def begin(self) -> int:
        """The first row of the window, for pieces that are alike."""
        return self.pieces[0].begin

    @property
    def end(self) -> int:
        return self.begin + self.rows

    @property
    def pairs(self) -> list[Pair]:
        return [piece[:2] for piece in self.pieces]

    @property
    def receivers(self) -> list[int]:
        return [piece.receiver for piece in self.pieces]


Part = tuple[Hop, SSAValue]
"""What a device sends, keeps or receives of a hop."""


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
        return self.receiving([max(hop.rows for hop in each) for each in rounds(tuple(step.hops(True) for step in steps))])

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

    def hops(self, moving: bool) -> tuple[Hop, ...]:
        """The pieces that the step moves between devices, or those that devices keep."""
        return tuple(hop for hop in hops(self.have, self.want, self.extent) if hop.moves is moving)

    @property
    def order(self) -> int:
        return shift([pair for hop in self.hops(True) for pair in hop.pairs], devices(self.axes)) if self.is_in_time else 0

    def renamed(self, axes: tuple[Place, ...], parts: Sequence[DimPart]) -> Self:
        return replace(self, axes=axes, dim=parts[self.dim].dim)

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        return exchanged([Path.of(self)], [x])[0]

    def __str__(self) -> str:
        shared = "" if self.units or not self.hops(True) else ", in the permutes of another array"
        return f"halo {self.over} {self.dim}: {self.have or 'whole'} to {self.want}{shared}"


def sharing(way: Path) -> Hashable:
    """A key: paths of arrays of one dtype with equal keys may share permutes. None if a path cannot share any.

    Halos share permutes if they have the same axes, dim and shape of a row.
    """
    match way.steps:
        case (Halo(units=(_, *_), axes=axes, dim=dim, before=before),):
            shape = before.local_shape
            return axes, dim, shape[:dim] + shape[dim + 1 :]
        case _:
            return None


def joint(ways: Sequence[Path]) -> list[Path] | None:
    """The paths of several arrays of one dtype if these share permutes, which the first path counts; None if they do not.

    ```
    roll(x, 1) on data=3, of its two parts: two permutes of a row  -->  one permute of a row
    ```
    """
    if len(ways) == 1 or len(keys := {*map(sharing, ways)}) > 1 or None in keys:
        return None
    first, *others = halos = _halos(ways)
    one = first.sending(halos)
    is_less = one.bytes < sum(way.bytes for way in ways)
    return [*map(Path.of, (one, *(each.receiving(()) for each in others)))] if is_less else None


def sharers(ways: Sequence[tuple[Path, Hashable]]) -> Iterator[tuple[list[int], list[Path]]]:
    """Groups of paths that share permutes, by their numbers, and the paths that they are then. Only those of one key share."""
    groups = dict[Hashable, list[int]]()
    for number, (way, key) in enumerate(ways):
        if (shares := sharing(way)) is not None:
            groups.setdefault((shares, key), []).append(number)
    for group in groups.values():
        if (together := joint([ways[number][0] for number in group])) is not None:
            yield group, together


def exchanged(ways: Sequence[Path], values: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
    """The ops of halos that share permutes, and the new local arrays."""
    ops: list[Operation] = []
    return ops, _Windows(values[0], _halos(ways), ops).of(values)


def _halos(ways: Sequence[Path]) -> list[Halo]:
    return [step for way in ways for step in way.steps if isinstance(step, Halo)]


@lru_cache(maxsize=1 << 12)
def hops(have: Factor | None, want: Factor, extent: int) -> tuple[Hop, ...]:
    """Lists the pieces. A device uses its own rows where it can, and takes each other row from the one device that owns it."""
    if have is None:
        return ()
    apart, is_alike = abs(have.stride), abs(have.stride) == abs(want.stride)
    turns: Iterable[int] = (0,)
    if have.is_in_turn(extent):
        turns = range(max(0, want.begin) // have.span * have.span, min(want.end, extent), have.span)
    # Where windows overlap, a device owns its block; what follows the last one is that one's.
    lead = max(0, min(have.before, have.width - apart))
    owned = sorted((turn + have.start(device) + lead, device, turn) for turn in turns for device in range(have.size))
    begins = [first for first, *_ in owned]
    lasts = [*begins[1:], extent]
    found: dict[tuple[int, bool, int], list[Piece]] = {}
    for i in range(want.size):
        start = want.start(i)
        begin, end = max(0, start), min(start + want.width, extent)
        near = range(max(0, bisect_right(begins, begin) - 1), bisect_left(begins, end))
        blocks = {owned[at][1:]: (begins[at], lasts[at]) for at in near}
        blocks |= {(i, turn): (own := turn + have.start(i), own + have.width) for _, turn in blocks}
        for (j, turn), (first, last) in blocks.items():
            if j != i:
                own = blocks[i, turn]
                first, last = (first, min(last, own[0])) if first < own[0] else (max(first, own[1]), last)
            first, last = max(first, begin), min(last, end)
            if first < last:
                # Blocks in turn: a device keeps its own one behind another.
                local = first - turn - have.start(j) + turn // have.span * apart
                key = first - start - local if is_alike else j - i, i != j, turn
                found.setdefault(key, []).append(Piece(j, i, local, first - start, last - first))
    return tuple(_hop(moves, is_alike, pieces) for (_, moves, _), pieces in sorted(found.items()))


def _hop(moves: bool, is_alike: bool, pieces: Sequence[Piece], array: int = 0) -> Hop:
    begin = min(piece.begin for piece in pieces)
    even = tuple(piece.earlier(piece.begin - begin) for piece in pieces) if is_alike else tuple(pieces)
    return Hop(moves, is_alike, max(piece.rows for piece in even), even, array)


@lru_cache(maxsize=1 << 12)
def rounds(hops: tuple[tuple[Hop, ...], ...]) -> tuple[tuple[Hop, ...], ...]:
    """Groups the pieces of several arrays into permutes.

    ```
    1 -> 0, 2 -> 1   and   3 -> 1, 4 -> 2   and   5 -> 2, 6 -> 3      -->      the first and the third, then the second
    ```
    """
    every = [hop._replace(array=at) for at, each in enumerate(hops) for hop in each]
    ways = [_first_fit(every), _first_fit(sorted(every, key=lambda hop: -hop.rows))]
    best = min(ways, key=lambda way: (sum(max(hop.rows for hop in each) for each in way), len(way)))
    return tuple(map(_merged, best))


def _first_fit(hops: Sequence[Hop]) -> list[list[Hop]]:
    """Puts each hop into the first permute in which its devices neither send nor receive another piece."""
    found: list[tuple[list[Hop], set[int]]] = []
    for hop in hops:
        taken = {end for pair in hop.pairs for end in ends(pair)}
        fitting = (each for each in found if each[1].isdisjoint(taken))
        if (first := next(fitting, None)) is None:
            found.append(first := ([], set()))
        first[0].append(hop)
        first[1].update(taken)
    return [each for each, _ in found]


def _merged(permute: Sequence[Hop]) -> tuple[Hop, ...]:
    """Merges those pieces of each array that devices look up in a table."""
    found: dict[tuple[int, int | None], list[Piece]] = {}
    for number, hop in enumerate(permute):
        found.setdefault((hop.array, number if hop.is_alike else None), []).extend(hop.pieces)
    return tuple(_hop(True, number is not None, pieces, array) for (array, number), pieces in found.items())


class _Windows(Along):
    """Builds the local windows of several arrays on the device on which the ops run."""

    def __init__(self, like: SSAValue, steps: Sequence[Halo], into: Sink) -> None:
        super().__init__(steps[0].axes, steps[0].dim, into)
        self.like, self.steps = like, steps
        self.cut_rows = cache(self._cut_rows)

    @cached_property
    def coordinate(self) -> SSAValue:
        return self.add(spmd.CoordinateOp(self.axes))

    def of(self, arrays: Sequence[SSAValue]) -> list[SSAValue]:
        """The windows of these arrays."""
        arrived: list[list[Part]] = [[] for _ in arrays]
        for permute in rounds(tuple(step.hops(True) for step in self.steps)):
            sent = [self.taken(arrays[hop.array], hop) for hop in permute]
            for (hop, _), piece in zip(sent, self.sent(sent), strict=True):
                arrived[hop.array].append((hop, piece))
        return [self.window(*each) for each in zip(self.steps, arrays, arrived, strict=True)]

    def taken(self, x: SSAValue, hop: Hop) -> Part:
        """The rows that this device sends, or keeps, for a hop. Pieces begin earlier if there are too few rows behind them."""
        if hop.is_alike:
            return hop, self.cut_rows(x, hop.pieces[0].first, hop.rows)
        most = self.length(x) - hop.rows
        hop = hop._replace(pieces=tuple(piece.earlier(max(0, piece.first - most)) for piece in hop.pieces))
        return hop, self.cut_at(x, self.listed({piece.sender: piece.first for piece in hop.pieces}), hop.rows)

    def sent(self, parts: Sequence[Part]) -> list[SSAValue]:
        """Moves several pieces by one permute, and returns what arrives of each: zeros on devices that receive none."""
        most = max(hop.rows for hop, _ in parts)
        (_, first), *others = parts
        payload = self.lengthened(first, most)
        for hop, part in others:
            if part is not first:
                senders = [piece.sender for piece in hop.pieces]
                payload = self.choose(senders, self.lengthened(part, most), payload)
        got = self.permuted(payload, sorted(pair for hop, _ in parts for pair in hop.pairs))
        if not others:
            return [got]
        cut = [(hop, self.cut_rows(got, 0, hop.rows)) for hop, _ in parts]
        return [self.choose(hop.receivers, x, *self.zeros(hop.rows)) for hop, x in cut]

    def window(self, step: Halo, x: SSAValue, parts: list[Part]) -> SSAValue:
        """The window of an array, of the pieces that have arrived and those that the device keeps."""
        have, want, extent = step.have, step.want, step.extent
        if have is None:
            return self.of_whole(x, want, extent)
        parts += [self.taken(x, hop) for hop in step.hops(False)]
        if all(hop.is_alike for hop, _ in parts):
            parts.sort(key=lambda part: part[0].begin)
            # Where blocks and windows follow each other in one order, all devices keep something, but those at the ends.
            is_forward = have.stride * want.stride > 0 and not have.is_in_turn(extent)
            some_keep = not is_forward and any(not hop.moves and len(hop.pieces) < want.size for hop, _ in parts)
            overlap = any(hop.begin < before.end for (before, _), (hop, _) in pairwise(parts))
            out = (self.overlaid if some_keep or overlap else self.joined)(parts, want.width)
        else:
            out = self.written(parts, want.width)
        if not want.has_halo or not is_padded(extent, [have]):
            return out
        # Behind its end a padded dim may hold anything.
        return self.inside(out, self.dim, self.place(want.stride, want.start(0)), extent, self.outside())

    def of_whole(self, x: SSAValue, want: Factor, extent: int) -> SSAValue:
        """This device's window, cut out of the whole dim."""
        before, after = max(0, -want.begin), max(0, want.end - extent)
        if before or after:
            config = tuple((before, after, 0) if at == self.dim else (0, 0, 0) for at in range(len(type_at(x).shape)))
            x = self.of_length(before + extent + after, "pad", [x, self.outside()], padding_config=config)
        return self.cut_at(x, self.place(want.stride, want.start(0) + before), want.width)

    def joined(self, parts: Sequence[Part], width: int) -> SSAValue:
        """Concatenates the pieces, which are the same rows on all devices."""
        at, rows = 0, list[SSAValue]()
        for hop, part in parts:
            rows += [*self.zeros(hop.begin - at), part]
            at = hop.end
        return self.concatenated([*rows, *self.zeros(width - at)])

    def overlaid(self, parts: Sequence[Part], width: int) -> SSAValue:
        """Overlays the pieces on zeros, each on the devices that receive it.

        They overlap if the last device has a longer block: its rows are as far from the last receivers as those of the device
        before it are from others.
        """
        (out,) = self.zeros(width)
        for hop, part in parts:
            rows = [self.cut_rows(out, 0, hop.begin), part, self.cut_rows(out, hop.end, width - hop.end)]
            out = self.choose(hop.receivers, self.concatenated([each for each in rows if self.length(each)]), out)
        return out

    def written(self, parts: Sequence[Part], width: int) -> SSAValue:
        """Writes each piece over zeros where its rows belong.

        On devices that receive none, it is written in front of the window.
        """
        room = max(hop.rows for hop, _ in parts)
        (out,) = self.zeros(length := room + width + room)
        for hop, part in parts:
            at = self.listed({piece.receiver: room + piece.begin for piece in hop.pieces})
            out = self.of_length(length, "dynamic_update_slice", [out, part, *self.starts(at)])
        return self.cut_rows(out, room, width)

    def place(self, stride: int, first: int) -> SSAValue:
        """This device's coordinate times `stride`, plus `first`."""
        if not stride:
            return self.number(first, IDS)
        scaled = self.coordinate if stride == 1 else self.apply("mul", self.coordinate, stride)
        return self.apply("add", scaled, first) if first else scaled

    def listed(self, numbers: Mapping[int, int]) -> SSAValue:
        """The number that a table lists for this device; zero if it lists none."""
        every = [numbers.get(device, 0) for device in range(devices(self.axes))]
        if len(steps := {after - before for before, after in pairwise(every)}) == 1:
            return self.place(steps.pop(), every[0])
        return self.reshape(self.picked(self.iota((max(every) + 1,), 0), [[number] for number in every], 0), ())

    def choose(self, devices: Sequence[int], mine: SSAValue, other: SSAValue) -> SSAValue:
        """Selects `mine` on these devices, and `other` on all others."""
        first, last = min(devices), max(devices)
        if last - first < len(devices):
            is_among = self.between(self.place(1, -first), len(devices))
        else:
            is_among = self.equals(self.listed(dict.fromkeys(devices, 1)), 1)
        return self.select(self.spread(is_among, type_at(mine).shape), mine, other)

    def lengthened(self, x: SSAValue, size: int) -> SSAValue:
        """Appends zeros to the rows, up to this length."""
        return self.concatenated([x, *self.zeros(size - self.length(x))])

    def _cut_rows(self, x: SSAValue, first: int, size: int) -> SSAValue:
        return x if size == self.length(x) else self.part(x, self.dim, first, size)

    def cut_at(self, x: SSAValue, start: SSAValue, size: int) -> SSAValue:
        return x if size == self.length(x) else self.of_length(size, "dynamic_slice", [x, *self.starts(start)])

    def starts(self, start: SSAValue) -> list[SSAValue]:
        zero = self.number(0, IDS)
        return [start if at == self.dim else zero for at in range(len(type_at(self.like).shape))]

    def zeros(self, size: int) -> list[SSAValue]:
        """An array of so many rows; none if there are no rows."""
        return [self.spread(self.outside(), self.sized(self.like, size))] if size else []

    def outside(self) -> SSAValue:
        """What windows hold where they are outside of the array."""
        return self.unit("add", type_at(self.like).dtype)
