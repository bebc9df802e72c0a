"""What the meaning of a head may ask of the numbers that it runs on, and the world in which they are ints.

world.where(c, x, y)         x where c holds, else y
world.digits(i, m)           i // m and i % m
world.fold("add", n, f)      f(0) + f(1) + ... + f(n - 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Protocol

from .values import Complex, Number, Truth, as_complex

KINDS = ("integers", "reals", "complex")
"""The kinds of numbers for which a law is proved, one after another."""


class NoMeaning(Exception):
    """Raised where a head has no meaning for a kind of numbers."""


class World(Protocol):
    """Numbers, truths, and folds over ranges."""

    kind: str
    cast: str
    """What `cast` does: `keeps` every number, or `cuts` its fraction off."""

    def where(self, condition: Truth, then: Number, other: Number) -> Number: ...

    def every(self, *facts: Truth) -> Truth: ...

    def some(self, *facts: Truth) -> Truth: ...

    def fails(self, fact: Truth) -> Truth: ...

    def digits(self, index: Number, block: Number) -> tuple[Number, Number]:
        """The quotient and the remainder of an index by a positive block."""
        ...

    def fold(self, monoid: str, size: Number, body: Callable[[Number], Number]) -> Number:
        """Folds the body at 0, 1, ... size - 1, in this order. `add` adds; other monoids may be any."""
        ...

    def combine(self, monoid: str, x: Number, y: Number) -> Number: ...

    def unit(self, monoid: str) -> Number: ...

    def divide(self, x: Number, y: Number) -> Number:
        """The exact quotient of reals; of integers without its fraction."""
        ...

    def truncated(self, x: Number) -> Number:
        """A real without its fraction."""
        ...

    def unknown(self, name: str, *arguments: Number) -> Number:
        """A number of which nothing is known but that it is the same for equal arguments."""
        ...

    def tells(self, name: str, *arguments: Number) -> Truth:
        """A truth of which nothing is known but that it is the same for equal arguments."""
        ...

    def along(self, element: Number, dim: Number) -> Number:
        """The index of an element of an array along a dim."""
        ...

    def choice(self, size: Number, holds: Callable[[Number], Truth]) -> tuple[Truth, Number]:
        """Whether a truth holds for one of 0, 1, ... size - 1, and for which one."""
        ...

    def in_order(self, sizes: Sequence[Number], body: Callable[..., Number], place: Number) -> Number:
        """The number that is at this place among those of the body, at all indices below the sizes, in ascending order."""
        ...


class OfSizes:
    """Worlds of given sizes: folds are written out, and every monoid adds."""

    __slots__ = ()

    def fold(self, monoid: str, size: Number, body: Callable[[Number], Number]) -> Number:
        del monoid
        terms = [body(number) for number in range(size)]
        return sum(terms[1:], terms[0]) if terms else 0

    def combine(self, monoid: str, x: Number, y: Number) -> Number:
        del monoid
        return x + y

    def unit(self, monoid: str) -> Number:
        del monoid
        return 0

    def along(self, element: Number, dim: Number) -> Number:
        return element[dim]


@dataclass(eq=False, slots=True)
class Ints(OfSizes):
    """Exact numbers of Python: the interpreter that counter-examples are replayed in."""

    kind: str = "integers"
    cast: str = "keeps"
    guess: Callable[[str, tuple[Number, ...]], Number] = field(default=lambda _name, _arguments: 7)
    """What is taken for an unknown number."""

    def where(self, condition: Truth, then: Number, other: Number) -> Number:
        return then if condition else other

    def every(self, *facts: Truth) -> Truth:
        return all(facts)

    def some(self, *facts: Truth) -> Truth:
        return any(facts)

    def fails(self, fact: Truth) -> Truth:
        return not fact

    def digits(self, index: Number, block: Number) -> tuple[Number, Number]:
        return divmod(index, block)

    def divide(self, x: Number, y: Number) -> Number:
        if self.kind == "integers":
            quotient = abs(x) // abs(y)
            return quotient if (x < 0) == (y < 0) else -quotient
        if isinstance(x, Complex) or isinstance(y, Complex):
            return inverse(as_complex(y), self) * x
        return Fraction(x) / y

    def truncated(self, x: Number) -> Number:
        return int(x)

    def unknown(self, name: str, *arguments: Number) -> Number:
        return self.guess(name, arguments)

    def tells(self, name: str, *arguments: Number) -> Truth:
        return bool(self.guess(name, arguments))

    def choice(self, size: Number, holds: Callable[[Number], Truth]) -> tuple[Truth, Number]:
        found = next((number for number in range(size) if holds(number)), None)
        return found is not None, found or 0

    def in_order(self, sizes: Sequence[Number], body: Callable[..., Number], place: Number) -> Number:
        if self.kind == "complex":
            raise NoMeaning("complex numbers have no order")
        return sorted(body(*at) for at in product(*map(range, sizes)))[place]


def inverse(y: Complex, world: World) -> Complex:
    """One divided by a complex number: its conjugate divided by the square of its size."""
    size = y.real * y.real + y.imag * y.imag
    return Complex(world.divide(y.real, size), world.divide(-y.imag, size))
