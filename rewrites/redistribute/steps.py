"""The steps of a redistribution: what one collective does to a layout, and how many bytes each device receives.

A step adds, removes or moves placed factors of dims. Their strides count elements of the whole array, so steps on different
axes commute without renumbering. Each kind of step is a class in a file of `kinds`, which says all that is particular to it.

    f32[data*128, 256]   -- all_to_all over data: from dim 0 stride 128 to dim 1 stride 64 -->   f32[512, data*64]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar, NamedTuple, Self, cast

from xdsl.ir import Operation, SSAValue

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis
from ...dialects.ranges.factor import Factor

Bytes = int | Fraction
"""Exact bytes, rounded only for display: one of three devices receives 2/3 of each byte twice in an all_reduce."""

NOT_YET = Layout(())
"""The layouts around a step that has no place in a path yet."""


class Part(NamedTuple):
    """What takes part of a dim: `extent` blocks of `minor` elements, of which each device has `rows`."""

    dim: int
    extent: int
    minor: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One collective, or what every device does alone.

    `axes` are the mesh axes it runs over, major to minor. `bytes` is what one device receives. `before` and `after` are the
    layouts around it, what is pending left out.
    """

    axes: tuple[MeshAxis, ...] = ()
    bytes: Bytes = 0
    before: Layout = NOT_YET
    after: Layout = NOT_YET

    kind: ClassVar[str] = ""
    """Its name in reports, and the head of its terms."""
    terms: ClassVar[tuple[str, ...]] = ()
    """The arguments of its terms, by name; none if no law makes it."""
    known: ClassVar[dict[str, type[Step]]] = {}
    """The kinds of steps, by the heads of their terms."""

    def __init_subclass__(cls) -> None:
        if cls.kind and cls.terms:
            Step.known[cls.kind] = cls

    @property
    def names(self) -> tuple[str, ...]:
        """The texts of its axes."""
        return tuple(map(str, self.axes))

    @property
    def over(self) -> str:
        """Its axes, as its text has them."""
        return f"over ({', '.join(self.names)})"

    @property
    def parts(self) -> tuple[Bytes, ...]:
        """What one device receives in each of its collectives; most kinds have one, and what a device does alone has none."""
        return (self.bytes,)

    @property
    def communicates(self) -> bool:
        """Whether there is a collective in it."""
        return bool(self.parts)

    @classmethod
    def of(cls, *args: object) -> Step:
        """The step of a term with these arguments."""
        return cls(**dict(zip(cls.terms, cast(Sequence[Any], args), strict=True)))

    @classmethod
    def received(cls, larger: int, group: int) -> Bytes:
        """The bytes that one device of a group receives, exactly; `larger` is the larger side's local size in bytes."""
        return share(larger, group)

    def ops(self, x: SSAValue) -> Sequence[Operation]:
        """The ops that do the step on the local array; the last one has the result."""
        raise NotImplementedError

    def renamed(self, axes: tuple[MeshAxis, ...], parts: Sequence[Part]) -> Self:
        """The step of an array of which these are parts, and which has other axes and more dims; without its layouts."""
        return replace(self, axes=axes)

    @property
    def sharing(self) -> Hashable:
        """Steps of several arrays with one key may share collectives; None: this kind shares none."""
        return None

    @classmethod
    def together(cls, steps: Sequence[Step]) -> Sequence[Step] | None:
        """Steps with one key as they are if they share collectives, which the first one counts; None if they gain nothing."""
        return None

    @classmethod
    def exchange(cls, steps: Sequence[Step], values: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
        """The ops of steps that share collectives, and their results."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{self.kind} {self.over}"


@dataclass(frozen=True, slots=True)
class Path:
    """The steps of a redistribution, the first one first, and the bytes that one device receives in all."""

    steps: tuple[Step, ...]
    bytes: Bytes

    @staticmethod
    def of(*steps: Step) -> Path:
        """The path of these steps."""
        return Path(steps, sum(step.bytes for step in steps))

    def __add__(self, then: Path) -> Path:
        return Path(self.steps + then.steps, self.bytes + then.bytes)

    @property
    def collectives(self) -> int:
        """The number of collectives in all steps."""
        return sum(len(step.parts) for step in self.steps)

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps)) or "nothing"


def share(larger: int, group: int, times: int = 1) -> Bytes:
    """What a device receives if all others send it their parts of `larger` bytes: `V(n-1)/n` of n devices."""
    shares = times * larger * (group - 1)
    return Fraction(shares, group) if shares % group else shares // group


def side_by_side(axes: Sequence[MeshAxis], stride: int) -> Iterator[Factor]:
    """The factors of neighbours, given major to minor, from the minor one on, which has this stride."""
    for axis in reversed(axes):
        yield Factor(axis, stride)
        stride *= axis.size


def devices(axes: Iterable[MeshAxis]) -> int:
    """How many devices there are along several axes."""
    return prod(axis.size for axis in axes)
