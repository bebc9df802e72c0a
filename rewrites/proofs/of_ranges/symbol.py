"""A number that stands for any: code computes with it as with an int. What depends on its value is asked of the path it is on.

n + 2*n   -->   3*n          if n % 2: ...   -->   both, on two paths
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from .natural import Polynomial, constant


class TooLong(Exception):
    """Raised where a path ends without an answer."""


class Asked(Protocol):
    """What a number asks of its path."""

    def at_least_zero(self, asked: Polynomial) -> bool: ...

    def is_zero(self, asked: Polynomial) -> bool: ...

    def reduced(self, each: Polynomial) -> Polynomial: ...

    def digits(self, number: Polynomial, block: Polynomial) -> tuple[Symbol, Symbol]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A number on one path. It is equal to no number of another path, and to what the path says that it equals."""

    polynomial: Polynomial
    path: Asked

    def made(self, polynomial: Polynomial) -> Symbol:
        return Symbol(polynomial, self.path)

    def __add__(self, other: Number) -> Symbol:
        return self.made(self.polynomial + _polynomial(other))

    def __sub__(self, other: Number) -> Symbol:
        return self.made(self.polynomial - _polynomial(other))

    def __rsub__(self, other: Number) -> Symbol:
        return self.made(_polynomial(other) - self.polynomial)

    def __mul__(self, other: Number) -> Symbol:
        return self.made(self.polynomial * _polynomial(other))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Symbol:
        return self.made(self.polynomial.times(-1))

    def __pos__(self) -> Number:
        """The number that an extent is made of. Code tells the extents 0 and 1 by identity, so it says whether it is one."""
        return next((number for number in (0, 1) if self == number), self.made(self.path.reduced(self.polynomial)))

    def __abs__(self) -> Symbol:
        return self if self >= 0 else -self

    def __divmod__(self, other: Number) -> tuple[Symbol, Symbol]:
        block = self.made(_polynomial(other))
        if block < 0:
            quotient, rest = divmod(-self, -block)
            return quotient, -rest
        if block == 0:
            raise ZeroDivisionError
        return self.path.digits(self.polynomial, block.polynomial)

    def __rdivmod__(self, other: int) -> tuple[Symbol, Symbol]:
        return divmod(self.made(constant(other)), self)

    def __floordiv__(self, other: Number) -> Symbol:
        return divmod(self, other)[0]

    def __rfloordiv__(self, other: int) -> Symbol:
        return divmod(other, self)[0]

    def __mod__(self, other: Number) -> Symbol:
        return divmod(self, other)[1]

    def __rmod__(self, other: int) -> Symbol:
        return divmod(other, self)[1]

    def __ge__(self, other: Number) -> bool:
        return self.path.at_least_zero(self.polynomial - _polynomial(other))

    def __le__(self, other: Number) -> bool:
        return self.path.at_least_zero(_polynomial(other) - self.polynomial)

    def __gt__(self, other: Number) -> bool:
        return not self <= other

    def __lt__(self, other: Number) -> bool:
        return not self >= other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Symbol):
            return self.path is other.path and self.path.is_zero(self.polynomial - other.polynomial)
        return isinstance(other, int) and self.path.is_zero(self.polynomial - constant(other))

    def __hash__(self) -> int:
        # Terms of different polynomials are two objects, as those of different numbers are.
        return hash((id(self.path), frozenset(self.polynomial.terms.items())))

    def __bool__(self) -> bool:
        return self != 0

    def __str__(self) -> str:
        return f"[{self.polynomial}]"


Number: TypeAlias = Symbol | int


def _polynomial(number: Number) -> Polynomial:
    return number.polynomial if isinstance(number, Symbol) else constant(number)
