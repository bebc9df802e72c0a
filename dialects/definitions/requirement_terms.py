"""What placing an index requires beyond the op on local types, as terms. The laws of `masks.rules` say what a device does.

```
gather: v is looked up           ("take", Lookup(1, 0, 1), ("build", TILED, BLOCK, OP))
iota: j is used as a value       ("slice", INDEX, BLOCK, ("iota", 16))
```

A definition's binding writes the terms for any placement, each with the placements that require it. `with_index` puts in what
only the placement says: the index, and how many values one device has. Without one of these, there is no law for the term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Flag
from typing import TypeAlias

from ..ranges.affine_read import AffineRead
from ..ranges.algebra import Place
from .syntax_tree import Param


class Held(Flag):
    """How devices hold the values of a placed index; a union of these is any of them."""

    BLOCKS = 1
    """One block each."""
    PADDED = 2
    """One block each, with padding behind the last value."""
    WINDOWS = 4
    """A window each. Windows may overlap, or reach beyond the values."""
    TURNS = 8
    """Several blocks each, dealt in turn."""
    RUNS = BLOCKS | PADDED | WINDOWS
    ANY = RUNS | TURNS


@dataclass(frozen=True, slots=True)
class Detail:
    """A leaf of a term that says how the op does what its head says."""


@dataclass(frozen=True, slots=True)
class Rows(Detail):
    """Positions along an index, at which the op reads or writes elements."""


@dataclass(frozen=True, slots=True)
class Lookup(Rows):
    """Component `component` of the index vectors in operand `operand` starts a window of `width` elements of the index.

    `ELEMENT`: each element of the operand is an index itself.
    """

    operand: int
    component: int
    width: int


@dataclass(frozen=True, slots=True)
class Picks(Rows):
    """The positions `first + step * k` for `k < count`: those of a slice along a dim."""

    first: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Begin(Detail):
    """The parameter by which windows begin; `sign` says whether it is added.

    An index whose values read the dim by `reach` needs the row of its window there. Without one, the op gets exactly the rows
    that it reads, one after another: `scaled` is the parameter by which the windows advance.
    """

    param: Param
    sign: int
    reach: AffineRead | None
    scaled: Param | None


@dataclass(frozen=True, slots=True)
class Along(Detail):
    """A monoid, selection or merge by which the op combines the elements along an index, but not to one element."""

    monoid: str


@dataclass(frozen=True, slots=True)
class Scan(Along):
    """A prefix fold with a monoid; `backwards`: a suffix fold."""

    backwards: bool


@dataclass(frozen=True, slots=True)
class Selection(Along):
    """A fold to the `best` elements. With their positions, these take as many bytes as `cost` elements."""

    best: int
    cost: int


@dataclass(frozen=True, slots=True)
class Merging(Along):
    """A merge of arrays, ordered by the first `keys` of them. `sizes` are the bytes of one element of each array.

    `ties`: elements with equal keys can differ, so their order matters: there are other arrays, or keys like `-0.0`.
    """

    keys: int
    sizes: tuple[int, ...]
    ties: bool


Term: TypeAlias = "str | int | Place | Detail | tuple[Term, ...]"

OP = "op"
"""The leaf of a term: the op itself, with the requirements of its other indices."""
INDEX, TILED, BLOCK = "index", "tiled", "block"
"""What a placement puts into a term: the index, the index unless devices hold windows of it, and how many values one device
holds unless it holds them in turn."""


def built(x: Term = OP, index: str = TILED) -> Term:
    """The array of which the devices hold blocks along the index; `x` is one of these."""
    return ("build", index, BLOCK, x)


def part(term: Term, index: str = INDEX) -> Term:
    """The requirement that a device has only its own block of `term`."""
    return ("slice", index, BLOCK, term)


def counts_once(operand: int, over: Term = TILED) -> Term:
    """The requirement of an operand that must count once, outside of a sum over a placed index or over mesh axes."""
    return ("add", operand, ("sum", over, OP))


def with_index(term: Term, given: Mapping[Term, Term | None]) -> Term | None:
    """A term with what is given for `INDEX`, `TILED` and `BLOCK`; None if it contains one that the placement does not have."""
    if not isinstance(term, tuple):
        return given.get(term, term)
    parts = [found for each in term if (found := with_index(each, given)) is not None]
    return tuple(parts) if len(parts) == len(term) else None


def details(term: Term) -> Iterator[Detail]:
    """The details in a term, from left to right."""
    if isinstance(term, tuple):
        for each in term:
            yield from details(each)
    elif isinstance(term, Detail):
        yield term
