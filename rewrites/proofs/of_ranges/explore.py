"""Runs ordinary code over numbers that stand for any, and proves that it says true on every path.

A law is a Python predicate: it makes numbers by `given`, calls the code that it is about, and returns whether what came out is
right. `explore` runs it once for each feasible sequence of outcomes of the comparisons on its way, each time with numbers that
are polynomials. A comparison that both ways are possible for is taken both ways. `a // b` and `a % b` become numbers of their
own, with `a = q·b + r` and `0 <= r < b`, except for what the polynomials say: `(c·n + j) // n` is `c` if `0 <= j < n`.

    def law(given):
        n, p = given.number("n", 1), given.number("p", 1)
        return size(product(Extent(n), Axis("a", p))) == n * p      -->   proved: on 1 path

If a path ends with false, numbers for it are looked for, and the law is run again over these ints. Only if it is false there is
it refuted. A law raises `Nothing` where it says nothing; an `Error` says nothing either.

    lambda given: given.number("n") + 4 != 20                     -->   refuted: n = 16
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from ....dialects.ground.errors import Error
from ..solver import EFFORT, need
from ..verdict import Nothing, Verdict, suppose
from .path import Path, another
from .symbol import TooLong

Law: TypeAlias = Callable[[Any], bool]
"""A predicate of `Path` or `Ints`. Its numbers are ints, as far as the code that it calls can tell."""

MOST_PATHS = 400


@dataclass(eq=False)
class Ints:
    """Gives a law ints: those of a counter-example."""

    numbers: Mapping[str, int]
    read: dict[str, int] = field(default_factory=dict[str, int])

    def value(self, name: str) -> int:
        return self.numbers.get(name, 0)

    def number(self, name: str, least: int = 0) -> int:
        """A number that is so large at least. A name that is given again is another one."""
        name = another(name, self.read)
        self.read[name] = max(least, self.value(name))
        return self.read[name]

    def integer(self, name: str) -> int:
        """A number of either sign."""
        name = another(name, self.read)
        self.read[name] = self.value(name) - self.value(f"-{name}")
        return self.read[name]

    def index(self, name: str, size: int) -> int:
        """A number below another one."""
        made = self.number(name)
        suppose(made < size)
        return made

    def __str__(self) -> str:
        return ", ".join(f"{name} = {number}" for name, number in self.read.items())


def explore(law: Law, effort: int = EFFORT) -> Verdict:
    """Proves a law on every path, or refutes it. Raises Error if Z3 is not installed."""
    need()
    script: list[tuple[bool, bool]] | None = []
    asked: dict[str, bool] = {}
    count = said = 0
    unproved: Verdict | None = None
    while script is not None:
        path = Path(script, asked)
        try:
            holds = law(path)
        except (Nothing, Error):
            holds = None
        except IndexError:
            holds = False
        except (TooLong, TypeError) as error:
            # Code that counts one by one cannot run over numbers that stand for any.
            return Verdict("not proved", str(error))
        count, said = count + 1, said + (holds is not None)
        if holds is not None and not holds and (found := _fails(law, path, effort)) is not None:
            if found.state == "refuted":
                return found
            unproved = unproved or found
        if count == MOST_PATHS:
            return Verdict("not proved", f"more than {MOST_PATHS} paths")
        script = following(path)
    if unproved is not None:
        return unproved
    if not said:
        return Verdict("not proved", "it never says anything")
    return Verdict("proved", f"on {said} path{'s' * (said != 1)}", said)


def following(path: Path) -> list[tuple[bool, bool]] | None:
    """The outcomes of the next run: of those of this one the last that can be otherwise is."""
    *before, (outcome, other) = path.taken or [(False, False)]
    while before and not other:
        outcome, other = before.pop()
    return [*before, (not outcome, False)] if other else None


def _fails(law: Law, path: Path, effort: int) -> Verdict | None:
    try:
        numbers = path.numbers(effort) if path.may(pairs=True) else None
    except TooLong as error:
        return Verdict("not proved", str(error))
    if numbers is None:
        return None
    return replayed(law, numbers) or Verdict("not proved", f"over ints the law holds for {numbers}")


def replayed(law: Law, numbers: Mapping[str, int]) -> Verdict | None:
    """The law for these ints; None if it holds."""
    given = Ints(numbers)
    try:
        holds = law(given)
    except (Nothing, Error):
        return None
    return None if holds else Verdict("refuted", str(given))


class Drawn(Ints):
    """Gives a law small ints, and places of two iterations."""

    def __init__(self, seed: int) -> None:
        super().__init__({})
        self.random = Random(seed)

    def value(self, name: str) -> int:
        return 2 if name.startswith("size(") else self.random.randrange(5)


def satisfiable(law: Law) -> str | None:
    """Small ints, with places of two iterations, for which a law says something, and that it holds."""
    for seed in range(20_000):
        given = Drawn(seed)
        try:
            if law(given):
                return str(given)
        except (Nothing, Error):
            continue
    return None
