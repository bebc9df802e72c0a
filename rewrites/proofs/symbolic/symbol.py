"""A number that stands for any: code computes with it as with an int. What depends on its value is asked of the run it is in.

n + 2*n   -->   3*n          if n % 2: ...   -->   both, in two runs
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, cast

from .polynomial import Polynomial, constant

UNREACHED = 2**62
"""What no number is compared with: the limits of integers in files."""


class Undecided(Exception):
    """Raised where code asks for what a run does not know."""


class Run(Protocol):
    """What a number asks of the run that it is in."""

    def at_least_zero(self, asked: Polynomial) -> bool: ...

    def is_zero(self, asked: Polynomial) -> bool: ...

    def digits(self, number: Polynomial, block: Polynomial) -> tuple[Symbol, Symbol]: ...

    def value(self, number: Polynomial) -> int:
        """The int that a number is known to be. Raises Undecided if it may be others."""
        ...


class Symbol:
    """A number in one run. It is equal to no number of another run, and to what its own run says that it equals."""

    __slots__ = ("polynomial", "run")

    def __init__(self, polynomial: Polynomial, run: Run) -> None:
        self.polynomial, self.run = polynomial, run

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Code that asks whether it has an int takes a symbol for one; Python's own, which needs its digits, does not."""
        return int

    def made(self, polynomial: Polynomial) -> Symbol:
        return Symbol(polynomial, self.run)

    def __add__(self, other: Number) -> Symbol:
        return self.made(self.polynomial + polynomial_of(other))

    def __sub__(self, other: Number) -> Symbol:
        return self.made(self.polynomial - polynomial_of(other))

    def __rsub__(self, other: Number) -> Symbol:
        return self.made(polynomial_of(other) - self.polynomial)

    def __mul__(self, other: Number) -> Symbol:
        return self.made(self.polynomial * polynomial_of(other))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Symbol:
        return self.made(self.polynomial.times(-1))

    def __pos__(self) -> Number:
        """The number that an extent is made of. Code tells the extents 0 and 1 by identity, so it says whether it is one."""
        return next((number for number in (0, 1) if self == number), self)

    def __abs__(self) -> Symbol:
        return self if self >= 0 else -self

    def __divmod__(self, other: Number) -> tuple[Number, Number]:
        block = self.made(polynomial_of(other))
        if block < 0:
            quotient, rest = divmod(-self, -block)
            return quotient, -rest
        if block == 0:
            raise ZeroDivisionError
        quotient, rest = self.run.digits(self.polynomial, block.polynomial)
        return plain(quotient), plain(rest)

    def __rdivmod__(self, other: int) -> tuple[Number, Number]:
        return divmod(self.made(constant(other)), self)

    def __floordiv__(self, other: Number) -> Number:
        return divmod(self, other)[0]

    def __rfloordiv__(self, other: int) -> Number:
        return divmod(other, self)[0]

    def __mod__(self, other: Number) -> Number:
        return divmod(self, other)[1]

    def __rmod__(self, other: int) -> Number:
        return divmod(other, self)[1]

    def __ge__(self, other: Number) -> bool:
        return self.run.at_least_zero(self.polynomial - polynomial_of(other))

    def __le__(self, other: Number) -> bool:
        return self.run.at_least_zero(polynomial_of(other) - self.polynomial)

    def __gt__(self, other: Number) -> bool:
        return not self <= other

    def __lt__(self, other: Number) -> bool:
        return not self >= other

    def __eq__(self, other: object) -> bool:
        if type(other) is Symbol and other.run is not self.run:
            return False
        return isinstance(other, int) and self.run.is_zero(self.polynomial - polynomial_of(other))

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        """Equal numbers have equal hashes, whatever they turn out to be. Of plain numbers, only 0 is in a set with symbols."""
        return 0

    def __index__(self) -> int:
        return self.run.value(self.polynomial)

    def __repr__(self) -> str:
        return f"[{self.polynomial}]"


Number: TypeAlias = Symbol | int


def polynomial_of(number: Number) -> Polynomial:
    return number.polynomial if type(number) is Symbol else constant(cast(int, number))


def plain(number: Number) -> Number:
    """A number, as an int if it is known."""
    known = polynomial_of(number).value
    return number if known is None else known
