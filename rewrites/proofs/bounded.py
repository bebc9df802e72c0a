"""The world of given sizes: folds are written out and quotients are of numbers, so that what the solver finds is exact.

A counter-example is looked for here. Its elements are then put into the interpreter, which says whether the two sides differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from .solver import z3
from .terms import Terms
from .values import Number, Truth
from .world import OfSizes


@dataclass(eq=False)
class Bounded(OfSizes, Terms):
    """The solver's world for given sizes."""

    def every(self, *facts: Truth) -> Truth:
        return all(facts) if all(isinstance(fact, bool) for fact in facts) else z3.And(*facts)

    def some(self, *facts: Truth) -> Truth:
        return any(facts) if all(isinstance(fact, bool) for fact in facts) else z3.Or(*facts)

    def fails(self, fact: Truth) -> Truth:
        return not fact if isinstance(fact, bool) else z3.Not(fact)

    def digits(self, index: Number, block: Number) -> tuple[Number, Number]:
        if isinstance(index, int) and isinstance(block, int):
            return divmod(index, block)
        return z3.IntVal(0) + index / block, index % block

    def choice(self, size: Number, holds: Callable[[Number], Truth]) -> tuple[Truth, Number]:
        found: list[Truth] = [holds(number) for number in range(size)]
        which: Any = 0
        for number in reversed(range(size)):
            which = self.where(found[number], number, which)
        return self.some(*found), which

    def unknown(self, name: str, *arguments: Number) -> Number:
        return super().unknown(name, *(z3.IntVal(each) if isinstance(each, int) else each for each in arguments))

    def in_order(self, sizes: Sequence[Number], body: Callable[..., Number], place: Number) -> Number:
        every = [body(*at) for at in product(*map(range, sizes))]
        found: Number = every[0]
        for number, element in enumerate(every):
            less = [
                self.where(x < element if at >= number else x <= element, 1, 0) for at, x in enumerate(every) if at != number
            ]
            found = self.where(sum(less[1:], less[0]) == place if less else place == 0, element, found)
        return found
