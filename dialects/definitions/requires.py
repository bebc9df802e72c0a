"""What placing an index requires beyond the op on local types, as terms. The laws of `masks.rules` say what a device does.

```
gather: v is looked up           ("take", Component(1, 0), ("build", INDEX, BLOCK, OP))
iota: j is used as a value       ("slice", INDEX, BLOCK, ("iota", 16))
```

A definition's binding writes the terms for any placement: `with_index` puts in the index and how many values one device has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..ranges.algebra import Axis, SubAxis


@dataclass(frozen=True, slots=True)
class Elements:
    """A looked-up index: the elements of operand `ids`."""

    ids: int


@dataclass(frozen=True, slots=True)
class Component:
    """A looked-up index: one component of the index vectors in operand `ids`."""

    ids: int
    number: int


@dataclass(frozen=True, slots=True)
class Picks:
    """The positions `first + step * k` for `k < count`: those of a slice along a dim."""

    first: int
    step: int
    count: int


Term: TypeAlias = "str | int | Axis | SubAxis | Elements | Component | Picks | tuple[Term, ...]"

OP = "op"
"""The leaf of a term: the op itself, with the requirements of its other indices."""
INDEX, BLOCK = "index", "block"
"""The placed index, and how many of its values one device holds."""
BUILT: Term = ("build", INDEX, BLOCK, OP)
"""The op's blocks along the index, together."""


def part(term: Term) -> Term:
    """The requirement that a device has only its own block of `term`."""
    return ("slice", INDEX, BLOCK, term)


def with_index(term: Term, index: int, block: int) -> Term:
    """A term with its index filled in, and `block`, the number of the index's values on one device."""
    match term:
        case tuple():
            return tuple(with_index(each, index, block) for each in term)
        case "index":
            return index
        case "block":
            return block
        case _:
            return term
