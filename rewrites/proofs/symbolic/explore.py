"""Runs ordinary code over numbers that stand for any, and proves that it says true in every run.

A law is a Python predicate: it takes numbers of `given`, calls the code that it is about, and returns whether what came out is
right. `explore` runs it once for each feasible sequence of outcomes of the comparisons on its way, each time with numbers that
are polynomials. A comparison that both ways are possible for is taken both ways. `a // b` and `a % b` become numbers of their
own, with `a = q·b + r` and `0 <= r < b`, except for what the polynomials say: `(c·n + j) // n` is `c` if `0 <= j < n`.

    def law(given):
        n, p = given.number("n", 1), given.number("p", 1)
        return size(product(Extent(n), Axis("a", p))) == n * p      -->   proved: on 1 path

If a run ends with false, numbers for it are looked for, and the law is run again over these ints. Only if it is false there is
it refuted. A law raises `Nothing` where it says nothing; an `Error` says nothing either.

    lambda given: given.number("n") + 4 != 20                     -->   refuted: n = 16
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from operator import is_
from random import Random
from typing import Any, TypeAlias, cast
from unittest.mock import patch

from ....dialects.ground import interned
from ....dialects.ground.errors import Error
from ..solver import EFFORT, need
from ..verdict import Nothing, Verdict
from .facts import Facts
from .given import Given, Ints
from .path import Path
from .symbol import Symbol, Undecided

Law: TypeAlias = Callable[[Given], bool]
"""A predicate. Its numbers are ints, as far as the code that it calls can tell."""

MOST_PATHS = 1000


def explore(law: Law, effort: int = EFFORT) -> Verdict:
    """Proves a law on every path, or refutes it. Raises Error if Z3 is not installed."""
    need()
    left, count, said, unproved = list[Path](), 0, 0, Verdict("proved")
    left.append(Path(Facts({}), left))
    try:
        while left:
            path, count = left.pop(), count + 1
            with apart():
                holds = tried(law, path)
            said += holds is not None
            if count > MOST_PATHS:
                raise Undecided(f"more than {MOST_PATHS} paths")
            if holds is False and (numbers := path.facts.numbers(effort)) is not None:
                if refuted := replayed(law, numbers):
                    return refuted
                unproved = Verdict("not proved", f"over ints the law holds for {numbers}")
    except (Undecided, TypeError) as why:
        # Code that counts one by one cannot run over numbers that stand for any.
        return Verdict("not proved", str(why))
    if not said:
        return Verdict("not proved", "it never says anything")
    return unproved if unproved.how else Verdict("proved", f"on {said} path{'s' * (said != 1)}", said)


def tried(law: Law, given: Given) -> bool | None:
    """Whether a law holds; None if it says nothing. What cannot be computed is wrong."""
    try:
        return bool(law(given))
    except (Nothing, Error):
        return None
    except (ValueError, IndexError):
        return False


def replayed(law: Law, numbers: Mapping[str, int]) -> Verdict | None:
    """The law for these ints; None if it holds."""
    given = Ints(numbers)
    return Verdict("refuted", str(given)) if tried(law, given) is False else None


class Drawn(Ints):
    """Gives a law small ints, and places of two iterations."""

    def __init__(self, seed: int) -> None:
        super().__init__(random=Random(seed))

    def value(self, name: str, least: int, most: int) -> int:
        return self.found.setdefault(name, 2) if name.startswith("size(") else super().value(name, least, most)


def satisfiable(law: Law) -> str | None:
    """Small ints, with places of two iterations, for which a law says something, and that it holds."""
    return next((str(given) for given in map(Drawn, range(20_000)) if tried(law, given)), None)


@contextmanager
def apart() -> Generator[None]:
    """Keeps terms of symbols to themselves: those of equal polynomials are one, and they are forgotten."""
    with patch.object(interned, "_made", _Apart()), patch.object(interned, "_plain", _kept):
        yield


class _Apart:
    """A table of terms of its own for those that have symbols."""

    def __init__(self) -> None:
        self.plain: Any = interned._made  # pyright: ignore[reportPrivateUsage]
        self.own = dict[object, Any]()

    def get(self, key: object) -> Any:
        known = _named(key)
        return self.plain.get(key) if known is key else self.own.get(known)

    def setdefault(self, key: object, made: Any) -> Any:
        known = _named(key)
        return self.plain.setdefault(key, made) if known is key else self.own.setdefault(known, made)


def _kept(field: object) -> object:
    """A field of a term, as it is."""
    return field


def _named(key: object) -> object:
    """A key with its symbols as they are written; the key itself if it has none."""
    if type(key) is Symbol:
        return "symbol", frozenset(key.polynomial.terms.items())
    if not isinstance(key, tuple):
        return key
    parts = cast("tuple[object, ...]", key)
    found: tuple[object, ...] = tuple(map(_named, parts))
    return parts if all(map(is_, found, parts)) else found
