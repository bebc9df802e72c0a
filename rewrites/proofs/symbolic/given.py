"""What gives a law its numbers: a run of them that stand for any, or ints.

A law calls it for each number that its statement is about. A name that is given again is the same number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from ..values import Number
from ..verdict import suppose


class Given(Protocol):
    """Gives numbers."""

    def number(self, name: str, least: int = 0) -> Number:
        """A number that is so large at least."""
        ...

    def integer(self, name: str) -> Number:
        """A number of either sign."""
        ...

    def below(self, name: str, end: Number) -> Number:
        """A number below another one, which is positive."""
        ...

    def index(self, name: str, size: Number) -> Number:
        """A number below another one. The law says nothing if there is none."""
        suppose(size > 0)
        return self.below(name, size) if type(size) is not int or size > 1 else 0

    def size(self, name: str) -> Number:
        """A number that is 1 or larger; the int 1, if it is 1."""
        number = self.number(name, 1)
        return 1 if number == 1 else number

    def digit(self, name: str, count: Number) -> Number:
        """A number below another one. If that is known, so is this."""
        number = self.index(name, count)
        return next(each for each in range(count) if number == each) if type(count) is int else number


@dataclass(eq=False)
class Ints(Given):
    """Gives ints: those of a counter-example, and others from 0 on that are drawn, if there is anything to draw them from."""

    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    random: Random | None = None
    most: int = 4
    """The largest number that is drawn."""
    found: dict[str, int] = field(default_factory=dict[str, int])

    def value(self, name: str, least: int, most: int) -> int:
        drawn = self.random.randint(least, most) if self.random is not None else max(least, 0)
        return self.found.setdefault(name, self.numbers.get(name, drawn))

    def number(self, name: str, least: int = 0) -> int:
        return max(least, self.value(name, least, least + self.most))

    def integer(self, name: str) -> int:
        if (minus := self.numbers.get(f"-{name}")) is not None:
            return self.found.setdefault(name, self.numbers.get(name, 0) - minus)
        return self.value(name, -self.most, self.most)

    def below(self, name: str, end: Number) -> int:
        found = self.value(name, 0, int(end) - 1)
        suppose(found < end)
        return found

    def __str__(self) -> str:
        return ", ".join(f"{name} = {number}" for name, number in self.found.items())
