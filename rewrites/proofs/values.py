"""What the terms of rules stand for: axes, arrays, pairs, and what a device holds. Their numbers are ints or solver terms.

Every value is a function of where it is read: `here` is the coordinate of this iteration along each axis, by the axis's name.

    offset(a, m)    Array(at=lambda here, i: here[a] * m)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Number: TypeAlias = Any
"""An int, a fraction, a pair of them that is complex, or a term of the solver that stands for one of these."""
Truth: TypeAlias = Any
"""A bool, or a term of the solver that stands for one."""
Here: TypeAlias = Mapping[str, Number]
Element: TypeAlias = Callable[[Here, Number], Number]


@dataclass(frozen=True, slots=True)
class Axis:
    """A mesh axis, a loop, or another range that iterations run over."""

    name: str
    size: Number
    stride: Number
    """How far the windows of two neighbours are apart."""
    before: Number
    """How many rows before its first one a window begins."""
    width: Number
    """The rows of a window."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array of one dim, as one iteration sees it: other dims are carried along.

    Without a size it has an element at every index: a scalar that each row has, or a filling behind the end.
    """

    size: Number | None
    at: Element
    scheme: str = ""
    """How an op folds its elements, for the ops that go on from its result."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two values: two layouts, or two arrays."""

    first: Any
    second: Any


@dataclass(frozen=True, slots=True)
class Spread:
    """How the iterations of a nest hold an array: each of its elements is one local element of one iteration.

    `whole(c, i)` is the index of the local element i of the iteration c; `number` and `local` find both again.
    """

    name: str
    extent: Number
    count: Number
    block: Number
    whole: Callable[[Number, Number], Number]
    number: Callable[[Number], Number]
    local: Callable[[Number], Number]


@dataclass(frozen=True, slots=True)
class Held:
    """A value on every device: which elements of the whole array the device has, and what it has for them."""

    has: Callable[[Here, Number], Truth]
    at: Element


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number of two exact ones."""

    real: Number
    imag: Number

    def __add__(self, other: Number) -> Complex:
        y = as_complex(other)
        return Complex(self.real + y.real, self.imag + y.imag)

    def __sub__(self, other: Number) -> Complex:
        y = as_complex(other)
        return Complex(self.real - y.real, self.imag - y.imag)

    def __neg__(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def __mul__(self, other: Number) -> Complex:
        y = as_complex(other)
        return Complex(self.real * y.real - self.imag * y.imag, self.real * y.imag + self.imag * y.real)


def as_complex(x: Number) -> Complex:
    return x if isinstance(x, Complex) else Complex(x, 0)
