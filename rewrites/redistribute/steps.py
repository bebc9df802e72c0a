"""The steps of a redistribution: what one collective does to a layout, and how many bytes each device receives.

A step adds, removes or moves placed factors of dims. Their strides count elements of the whole array, so steps on different
axes commute without renumbering. Each kind of step is a class in a file of `kinds`, which says all that is particular to it.

    f32[data*128, 256]   -- all_to_all over data: from dim 0 stride 128 to dim 1 stride 64 -->   f32[512, data*64]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar, NamedTuple, Self, cast

from xdsl.ir import Operation, SSAValue

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Loop, Place
from ...dialects.ranges.factor import Factor

Bytes = int | Fraction
"""Exact bytes, rounded only for display: one of three devices receives 2/3 of each byte twice in an all_reduce."""

Factors = list[tuple[int, Factor]]
"""Place factors of dims, each with its dim."""

NOT_YET = Layout(())
"""The value of `before` and `after` until a step has its place in a path."""


class DimPart(NamedTuple):
    """The part of a dim that changes: `extent` blocks of `minor` elements, of which a device has `rows` in each block."""

    dim: int
    extent: int
    minor: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One collective, or an op that every device runs without communication.

    `axes` are the mesh axes it runs over, major to minor. `bytes` is what one device receives. `before` and `after` are the
    layouts around it, what is pending left out.
    """

    axes: tuple[Place, ...] = ()
    bytes: Bytes = 0
    before: Layout = NOT_YET
    after: Layout = NOT_YET
    loops: tuple[Place, ...] = ()
    """The loops on which the value lies before and after it: a device runs it in each of their trips."""

    kind: ClassVar[str] = ""
    """The name of the kind in reports, and the head of its terms."""
    terms: ClassVar[tuple[str, ...]] = ()
    """The fields of the step that are the arguments of its term; empty if no law makes such a step."""
    rank: ClassVar[int] = 0
    """Of two steps that may change places, the one of lower rank comes first: slices shrink a value, gathers let it grow."""
    known: ClassVar[dict[str, type[Step]]] = {}
    """The classes of steps, by the heads of their terms."""

    def __init_subclass__(cls) -> None:
        if cls.kind and cls.terms:
            Step.known[cls.kind] = cls

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(map(str, self.axes))

    @property
    def over(self) -> str:
        """The axes in text: `over (data, model)`."""
        return f"over ({', '.join(self.names)})"

    @property
    def parts(self) -> tuple[Bytes, ...]:
        """The bytes that a device receives in each collective of the step. Most kinds have one collective, local steps none."""
        return (self.bytes,)

    @property
    def communicates(self) -> bool:
        """Whether the step has a collective."""
        return bool(self.parts)

    @property
    def is_in_time(self) -> bool:
        """Whether it runs over loops, where nothing is sent: it folds, stacks or takes what the trips of one device have."""
        return bool(self.axes) and all(isinstance(axis, Loop) for axis in self.axes)

    @property
    def order(self) -> int:
        """Over a loop: the order in which trips go on from each other, 1 or -1 for backwards; 0 if one needs what all have."""
        return 0

    @property
    def trips(self) -> int:
        """How often a device runs it in these loops."""
        return devices(self.loops)

    @property
    def collectives(self) -> tuple[Bytes, ...]:
        """The bytes that a device receives in each collective over axes."""
        return () if self.is_in_time else self.parts

    @classmethod
    def of(cls, *args: object) -> Step:
        """The step of a term with these arguments."""
        return cls(**dict(zip(cls.terms, cast(Sequence[Any], args), strict=True)))

    @classmethod
    def received(cls, larger: int, group: int) -> Bytes:
        """The bytes that a device of a group receives. `larger` is the larger of the local sizes before and after, in bytes."""
        return share(larger, group)

    def changes(self) -> tuple[Factors, Factors]:
        """The factors of dims that the step removes, and those that it places, if they tell what it does."""
        return [], []

    def placed(self, before: Layout, after: Layout, itemsize: int) -> Self:
        """Returns the step between these layouts, with its bytes."""
        larger = itemsize * max(prod(before.local_shape), prod(after.local_shape))
        bytes = 0 if self.is_in_time else self.received(larger, devices(self.axes))
        return replace(self, bytes=bytes, before=before, after=after)

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        """The ops that do the step on a local array. The result of the last one is the new local array."""
        raise NotImplementedError

    def renamed(self, axes: tuple[Place, ...], parts: Sequence[DimPart]) -> Self:
        """The same step over these axes, where it was over bundles of them.

        `parts` says for each dim of the step which part of a real dim it is. The layouts before and after are unchanged.
        """
        return replace(self, axes=axes)

    def __str__(self) -> str:
        return f"{self.kind} {self.over}"


@dataclass(frozen=True, slots=True)
class Path:
    """The steps of a redistribution in order, and the bytes that one device receives in all."""

    steps: tuple[Step, ...]
    bytes: Bytes

    @staticmethod
    def of(*steps: Step) -> Path:
        """Makes a path of these steps."""
        return Path(steps, sum(step.bytes * step.trips for step in steps))

    def __add__(self, then: Path) -> Path:
        return Path(self.steps + then.steps, self.bytes + then.bytes)

    @property
    def collectives(self) -> int:
        """The number of collectives in the path."""
        return sum(len(step.collectives) * step.trips for step in self.steps)

    @property
    def communicates(self) -> bool:
        """Whether any step takes what other devices, or other trips, have."""
        return any(step.communicates for step in self.steps)

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps)) or "nothing"


def share(larger: int, group: int, times: int = 1) -> Bytes:
    """The bytes that a device receives if all others send it their parts of `larger` bytes: `larger·(n-1)/n` for n devices."""
    shares = times * larger * (group - 1)
    return Fraction(shares, group) if shares % group else shares // group


def side_by_side(axes: Sequence[Place], stride: int) -> Iterator[Factor]:
    """The factors of neighbouring axes, given major to minor. Yields the minor one, with this stride, first."""
    for axis in reversed(axes):
        yield Factor(axis, stride)
        stride *= axis.size


def devices(axes: Iterable[Place]) -> int:
    """The number of devices along all of these axes."""
    return prod(axis.size for axis in axes)
