"""Merge: sorts across devices. Each has a sorted block; permutes between pairs of devices make the blocks of the sorted whole.

    1 3 | 0 4 | 2 7 | 5 6   -->   0 1 | 2 3 | 4 5 | 6 7

It is a bitonic network. Runs of sorted blocks are merged in pairs, until one run is left. In the first round of a merge the
partners are the first device of one run and the last of the other, the second and the last but one, and so on, and one of the
two blocks is read backwards. In each round the lower device keeps the lesser of the two elements at each position. After the
first round every element of the lower run comes before those of the other run; the next rounds do the same for halves of the
runs. After the last round each device sorts its block.

    4 devices:   0-1 2-3, sort;   0-3 1-2, 0-1 2-3, sort           p devices: log p (log p + 1) / 2 rounds

If the number of devices is not a power of two, the pairs with devices that do not exist are left out: these would have elements
that come after all others.

**Ties.** Elements with equal keys stay in order: first by the number of their block at the beginning of the merge, then by
their position in it. Rounds do not change positions, except that one block of the first round was read backwards. So the number
of the block is all that has to move with an element, and in the first round it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import prod
from typing import ClassVar, NamedTuple

from xdsl.ir import SSAValue

from ....dialects.definitions.requirement_terms import Merging
from ....dialects.ground.dtypes import itemsize
from ....dialects.lax import OPS
from ....dialects.params import ParamsAttr
from ....dialects.ranges.factor import Factor, major_first
from ...emit import EXACT, IDS, Sink, type_at
from ..steps import Bytes, Step
from .exchange import Along


class MergeRound(NamedTuple):
    """One exchange of blocks in the merge of two runs of `run` blocks each.

    The partner's number is the device's own number with the bits of `partner` flipped.
    """

    run: int
    partner: int

    @property
    def opens(self) -> bool:
        """Whether this is the first round of the merge."""
        return self.partner > self.run or self.run == 1

    @property
    def ends(self) -> bool:
        """Whether this is the last round of the merge."""
        return self.partner == 1

    def pairs(self, count: int) -> tuple[tuple[int, int], ...]:
        """The (sender, receiver) pairs of the round."""
        return tuple((device ^ self.partner, device) for device in range(count) if device ^ self.partner < count)


@cache
def network(count: int) -> tuple[MergeRound, ...]:
    """The rounds of a merge over `count` devices."""
    runs = (1 << each for each in range((count - 1).bit_length()))
    return tuple(
        MergeRound(run, each)
        for run in runs
        for each in (2 * run - 1, *(1 << at for at in range(run.bit_length() - 2, -1, -1)))
    )


def received(merging: Merging, count: int) -> tuple[int, ...]:
    """The bytes that a device receives for each element of its block, permute by permute."""
    number = (itemsize(_number(count)),) if merging.ties else ()
    return tuple(chain.from_iterable((*merging.sizes, *(() if each.opens else number)) for each in network(count)))


def pays(merging: Merging, count: int, free: Sequence[int]) -> bool:
    """Whether a merge receives no more bytes than a gather of the arrays. Arrays in `free` need no gather."""
    gathered = sum(size for at, size in enumerate(merging.sizes) if at not in free)
    return sum(received(merging, count)) <= (count - 1) * gathered


def _number(count: int) -> str:
    """The dtype in which block numbers are sent."""
    return "uint8" if count <= 1 << 8 else IDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Step):
    """Sorts arrays along `dim`, given in sorted blocks of this shape."""

    kind: ClassVar[str] = "permute"
    merging: Merging
    dim: int
    count: int
    shape: tuple[int, ...]

    @staticmethod
    def of_blocks(merging: Merging, dim: int, factors: Sequence[Factor], shape: tuple[int, ...]) -> Merge:
        """The step along a dim that these factors place."""
        axes, count = tuple(factor.axis for factor in major_first(factors)), prod(factor.size for factor in factors)
        bytes = sum(received(merging, count)) * prod(shape)
        return Merge(axes=axes, bytes=bytes, merging=merging, dim=dim, count=count, shape=shape)

    @property
    def parts(self) -> tuple[Bytes, ...]:
        return tuple(each * prod(self.shape) for each in received(self.merging, self.count))

    def exchanged(self, blocks: Sequence[SSAValue], device: SSAValue, into: Sink) -> list[SSAValue]:
        """Merges the blocks, and returns the blocks of the sorted arrays. `device` is the number of this device."""
        return _Device(self, device, into).merged(blocks)

    def __str__(self) -> str:
        return f"merge {self.over} of dim {self.dim}, in {len(network(self.count))} rounds"


class _Device(Along):
    """Builds the ops of one device."""

    def __init__(self, step: Merge, device: SSAValue, into: Sink) -> None:
        super().__init__(step.axes, step.dim, into)
        self.step, self.device = step, device
        self.keys, self.ties = step.merging.keys, step.merging.ties

    def merged(self, blocks: Sequence[SSAValue]) -> list[SSAValue]:
        """Runs all rounds. If ties matter, an additional last array holds the number of each element's original block."""
        arrays = list(blocks)
        for each in network(self.step.count):
            if self.ties and each.opens:
                arrays = [*arrays[: len(blocks)], self.filled(self.device)]
            arrays = self.round(each, arrays)
            if each.ends:
                arrays = self.sorted(each, arrays)
        return arrays[: len(blocks)]

    def round(self, round: MergeRound, arrays: list[SSAValue]) -> list[SSAValue]:
        """Runs one round, and returns the elements that this device keeps."""
        partner = self.apply("xor", self.device, round.partner)
        theirs = [self.sent(each, round) for each in arrays[: len(self.step.merging.sizes)]]
        if self.ties:
            theirs.append(self.filled(partner) if round.opens else self.number_sent(arrays[-1], round))
        both = list(zip(arrays, theirs, strict=True))
        first = self.apply("lt", self.device, partner)
        ordered = [
            (self.select(first, other, mine), self.select(first, mine, other))
            for mine, other in (*both[: self.keys], *both[len(self.step.merging.sizes) :])
        ]
        takes = self.precedes(ordered)
        if self.step.count & (self.step.count - 1):
            takes = self.both(takes, self.apply("lt", partner, self.step.count))
        return [self.select(takes, other, mine) for mine, other in both]

    def sent(self, x: SSAValue, round: MergeRound) -> SSAValue:
        """The partner's elements; in the first round of a merge, in reverse."""
        if round.opens:
            type = type_at(x)
            x = self.make("rev", (x,), type.dtype, type.shape, dimensions=(self.step.dim,))
        return self.permuted(x, round.pairs(self.step.count))

    def number_sent(self, numbers: SSAValue, round: MergeRound) -> SSAValue:
        return self.cast(self.sent(self.cast(numbers, _number(self.step.count)), round), IDS)

    def precedes(self, pairs: Sequence[tuple[SSAValue, SSAValue]]) -> SSAValue:
        """A mask: where the first keys come before the second ones. The first pair of keys that differ decides."""
        (one, other), *rest = pairs
        if type_at(one).dtype.startswith("complex"):
            part = f"float{itemsize(type_at(one).dtype) * 4}"
            parts = [[self.make(each, (x,), part, self.step.shape) for x in (one, other)] for each in ("real", "imag")]
            return self.precedes([(one, other) for one, other in parts] + rest)
        less = self.less(one, other)
        if not rest:
            return less
        equal = self.apply("not", self.less(other, one))
        return self.both(less, self.both(equal, self.precedes(rest)), "or")

    def less(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """A mask: where one key is less than another. NaN comes last."""
        less = self.apply("lt", one, other)
        if type_at(one).dtype.startswith(EXACT):
            return less
        is_last = self.both(self.apply("eq", one, one), self.apply("ne", other, other))
        return self.both(less, is_last, "or")

    def sorted(self, round: MergeRound, arrays: list[SSAValue]) -> list[SSAValue]:
        """Sorts this device's block at the end of a merge. Ties are ordered by the elements' original positions."""
        keys = self.keys
        if self.ties:
            length, position = self.step.shape[self.step.dim], self.iota(self.step.shape, self.step.dim)
            is_other = self.apply("and", self.apply("xor", arrays[-1], self.device), round.run)
            position = self.select(self.equals(is_other, 0), position, self.apply("sub", length - 1, position))
            arrays = [
                *arrays[:keys],
                self.apply("add", self.apply("mul", arrays[-1], length), position),
                *arrays[keys:-1],
            ]
            keys += 1
        params = ParamsAttr.of(dimension=self.step.dim, is_stable=True, num_keys=keys)
        op = OPS["sort"].of(arrays, [type_at(each) for each in arrays], params)
        self.into.append(op)
        return [*op.results[: self.keys], *op.results[keys:]]

    def filled(self, value: SSAValue) -> SSAValue:
        return self.spread(value, self.step.shape)
